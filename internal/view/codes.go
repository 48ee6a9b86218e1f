package view

import "github.com/gitopsd/gitopsd/planner"

// fieldTarget is the policy's field that a device's pin takes the place of.
const fieldTarget = "targetVersion"

// word is what a person can make of a code.
type word struct {
	// passed is what a device that came past this check is; "" has nothing to
	// say.
	passed string
	field  string // of the policy's spec, where one decides
	until  []string
}

var words = map[planner.Code]word{
	planner.BadInput:       {until: []string{"the device's document has a name that is its own"}},
	planner.Duplicate:      {until: []string{"only one installation answers to the name: stop the other, or give it a device of its own"}},
	planner.Upgrading:      {until: []string{"the device reports that it is on its target, or that it failed"}},
	planner.Excluded:       {until: []string{"a policy's selector matches the device's labels"}},
	planner.Disabled:       {passed: "enabled", field: "enabled", until: []string{"the policy says enabled: true"}},
	planner.BadPolicy:      {until: []string{"the policy is repaired: gitopsd validate says where"}},
	planner.NeverSeen:      {passed: "seen", until: []string{"its agent reports for the first time"}},
	planner.Current:        {field: fieldTarget, until: []string{"the target changes"}},
	planner.NoTarget:       {field: fieldTarget, until: []string{"targetVersion names a release that exists"}},
	planner.UnknownVersion: {passed: "version", until: []string{"the device reports a semantic version"}},
	planner.Newer:          {field: fieldTarget, until: []string{"the target is newer than the device, or rollbackFrom names the device's version"}},
	planner.ByHand:         {passed: "protocol", field: "minProtocol", until: []string{"its agent is upgraded by hand"}},
	planner.NeedsAgent:     {passed: "capabilities", until: []string{"its agent offers what the spec needs, or the spec no longer needs it"}},
	planner.Held:           {passed: "not held", until: []string{"the hold is taken away"}},
	planner.Observing:      {until: []string{"the spec no longer says onDevice.mode observe", "its content changes, or gitopsd retry has it compare anew"}},
	planner.CodeFailed:     {passed: "not failed", field: "maxAttempts", until: []string{"the target or its content changes", "the failure is forgotten (forgetFailuresBefore)"}},
	planner.CodeRefused:    {passed: "not failed", field: "maxAttempts", until: []string{"the target or its content changes", "the refusal is forgotten (forgetFailuresBefore)"}},
	planner.CodeBackoff:    {field: "backoff", until: []string{"its next try is due"}},
	planner.Offline:        {passed: "online", field: "offlineAfter", until: []string{"the device reports again"}},
	planner.Absent:         {passed: "online", field: "absentAfter", until: []string{"the device reports again"}},
	planner.Busy:           {passed: "idle", until: []string{"the device reports that it is idle; there is no deadline"}},
	planner.Stopped:        {passed: "not stopped", until: []string{"the daemon's stop is dealt with: gitopsd status has the remedy"}},
	planner.Paused:         {passed: "not paused", field: "paused", until: []string{"the pause is taken away"}},
	planner.Halted:         {passed: "not halted", field: "failureLimit", until: []string{"the target or its content changes", "the failures are forgotten (forgetFailuresBefore)", "the target goes back"}},
	planner.Frozen:         {passed: "not frozen", field: "freezes", until: []string{"the freeze is over, or taken away"}},
	planner.CodeWindow:     {field: "windows", until: []string{"the next window opens"}},
	planner.CodePilot:      {field: "pilot", until: []string{"the pilots are done and have soaked"}},
	planner.CodeWave:       {field: "waves", until: []string{"the wave that it waits for is satisfied"}},
	planner.Queued:         {field: "maxInFlight", until: []string{"a slot is free"}},
	planner.FleetGuard:     {field: "minAvailable", until: []string{"more devices of the policy are available"}},
	planner.CodeBudget:     {field: "budgets", until: []string{"more devices of its group are available"}},
	planner.Upgrade:        {until: []string{"the device reports that it is on its target, or that it failed"}},
}

// kind is what a code asks of a person; an unknown one, of a newer program,
// asks to look.
func kind(code string) planner.Kind {
	switch k := planner.Code(code).Kind(); k {
	case "":
		return planner.Attention
	case planner.Go:
		return planner.InFlight
	default:
		return k
	}
}

func wordOf(code string) word { return words[planner.Code(code)] }

// passed lists what a device had to be before the check of this code.
func passed(code string) []string {
	list := []string{}
	is := planner.Code(code)
	if _, known := words[is]; !known {
		return list
	}
	for _, c := range planner.Codes() {
		if c.Code == is {
			break
		}
		if p := words[c.Code].passed; p != "" && p != words[is].passed && (len(list) == 0 || list[len(list)-1] != p) {
			list = append(list, p)
		}
	}
	return list
}
