//go:build system

package protocoltest

// restraints are what holds a rollout back, each with a way to break it. Some
// history must notice: see [TestSystemRules].
var restraints = []rule{
	{name: "slots of a policy", file: "planner/allocate.go", fleet: true,
		old: `	case q.free == 0 || len(pl.fleet.holders)`, new: `	case len(pl.fleet.holders)`},
	{name: "slots of the fleet", file: "planner/allocate.go", fleet: true,
		old: `	case q.free == 0 || len(pl.fleet.holders) >= pl.fleet.slots || `, new: `	case q.free == 0 || `},
	{name: "minAvailable", file: "planner/allocate.go", fleet: true,
		old: `	case q.available-1 < p.keep:`, new: `	case false:`},
	{name: "budgets", file: "planner/allocate.go", fleet: true,
		old: `		full := pl.fullGroup(d)`, new: `		full := (*group)(nil)`},
	{name: "budgets count who goes in this plan", file: "planner/allocate.go", fleet: true,
		old: `		g.away = append(g.away, d)
`, new: ``},
	{name: "windows", file: "planner/gates.go", fleet: true,
		old: `		case !p.calendar.open:`, new: `		case false:`},
	{name: "freezes of a policy", file: "planner/gates.go", fleet: true,
		old: `		case p.frozen.by >= 0:`, new: `		case false:`},
	{name: "freezes of the fleet", file: "planner/gates.go", fleet: true,
		old: `		case pl.fleet.frozen.by >= 0:`, new: `		case false:`},
	{name: "a pause of the fleet", file: "planner/gates.go", fleet: true,
		old: `		case pl.fleet.Paused != "":`, new: `		case false:`},
	{name: "a pause takes back what has not begun", file: "planner/recall.go", fleet: true,
		old: `	case rules.Paused != "":`, new: `	case false:`},
	{name: "waves", file: "planner/waves.go", fleet: true,
		old: `		satisfied = satisfied && w.satisfied`, new: `		satisfied = satisfied || w.satisfied`},
	{name: "soak of a wave", file: "planner/waves.go", fleet: true,
		old: `w.soaked.add(pl, d, since, w.Soak, out)`, new: `w.soaked.add(pl, d, since, 0, out)`},
	{name: "nobody of a wave is in flight", file: "planner/waves.go", by: "planner",
		old: `		w.satisfied = w.inside == 0 && (`, new: `		w.satisfied = (`},
	{name: "the pilot", file: "planner/pilot.go", fleet: true,
		old: `	t.on = p.bad == "" && t.soaked.done < p.Pilot.Count`, new: `	t.on = false`},
	{name: "pilots of one plan", file: "planner/allocate.go", fleet: true,
		old: `		p.pilot.room = max(0, p.pilot.room-1)
`, new: ``},
	{name: "the pace", file: "planner/pace.go", fleet: true,
		old: `(moved || !p.pace.next.IsZero())`, new: `moved`},
	{name: "the pace within a plan", file: "planner/pace.go", fleet: true,
		old: `(moved || !p.pace.next.IsZero())`, new: `(false && moved || !p.pace.next.IsZero())`},
	{name: "the brake", file: "internal/sweep/validate.go", fleet: true,
		old: `	p.restrict = Braked(&p.d.brake.reading.Brake)`, new: `	p.restrict = Restrictions{}`},
	{name: "the brake on a policy", file: "internal/sweep/brake.go", fleet: true,
		old: `		r.Paused[name] = byBrake`, new: `		r.Paused[""] = name + byBrake`},
	{name: "the brake on a device", file: "internal/sweep/brake.go", fleet: true,
		old: `		r.Hold[id] = byBrake`, new: `		r.Hold[""] = id + byBrake`},
	{name: "a brake that is off again", file: "internal/sweep/brake.go", fleet: true,
		old: `		d.brake = brake{}
		return nil`, new: `		return nil`},
	{name: "a halt", file: "planner/limits.go", fleet: true,
		old: `return p.failures.halts() || p.refusals.halts()`, new: `return p.refusals.halts()`},
}
