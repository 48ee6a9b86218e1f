package planner

func (w *world) stepDevice(i int) {
	d := w.devices[i]
	if d.silent && d.pc != "acting" && d.pc != "looked" {
		return // without the network nothing begins, but what has begun goes on
	}
	switch d.pc {
	case "idle", "preparing":
		doc := w.look(d)
		switch {
		case d.pc == "preparing" && doc == d.doing:
			if d.busy {
				w.report(d, Said{Attempt: d.doing.attempt, Phase: "Waiting"})
				return
			}
			w.report(d, Said{Attempt: d.doing.attempt, Phase: "Starting", Starting: true})
			d.pc = "announced"
			w.note("%s announces %d", d.id, d.doing.attempt)
		case doc.attempt > d.ended && doc.target.Version != "" && doc.install == d.install:
			if doc.target == d.runs { // found done
				d.ended, d.pc = doc.attempt, "idle"
				d.acted[doc.attempt] = true
				w.report(d, Said{Attempt: doc.attempt, Phase: "Updated", Outcome: "ok"})
				return
			}
			d.doing, d.pc = doc, "preparing"
			w.report(d, Said{Attempt: doc.attempt, Phase: "Preparing"})
		case d.pc == "preparing":
			w.drop(d)
		}
	case "announced":
		switch doc := w.look(d); {
		case doc != d.doing:
			w.drop(d)
		case d.busy:
			d.pc = "preparing"
			w.report(d, Said{Attempt: d.doing.attempt, Phase: "Waiting"})
		default:
			d.pc = "looked"
		}
	case "looked":
		d.pc = "acting"
		d.acted[d.doing.attempt] = true
		w.note("%s acts on %d", d.id, d.doing.attempt)
		if w.ever[d.doing.release] == nil {
			w.ever[d.doing.release] = map[string]bool{}
		}
		w.ever[d.doing.release][d.id] = true
		if !d.silent {
			w.report(d, Said{Attempt: d.doing.attempt, Phase: "Applying", Begun: true})
		}
	case "acting":
		if d.silent && !w.bad[d.doing.release] {
			return // it is done when it is back; before, nobody can tell
		}
		d.ended, d.pc = d.doing.attempt, "idle"
		said := Said{Attempt: d.doing.attempt, Begun: true, Phase: "Error", Outcome: "failed"}
		if !w.bad[d.doing.release] {
			d.runs = d.doing.target
			said.Phase, said.Outcome = "Updated", "ok"
		}
		w.report(d, said)
		w.note("%s reports %d %s", d.id, said.Attempt, said.Outcome)
	}
}

// look reads the delivery ref.
func (w *world) look(d *simDevice) document {
	if d.delivery.generation < d.seen {
		w.fail("%s sees generation %d after %d", d.id, d.delivery.generation, d.seen)
	}
	d.seen = d.delivery.generation
	return d.delivery
}

func (w *world) drop(d *simDevice) {
	w.note("%s drops %d", d.id, d.doing.attempt)
	d.sawRecall = d.delivery.recalled
	d.pc = "idle"
	w.report(d, Said{Attempt: d.doing.attempt, Phase: "Updated"})
}

// heartbeat says again what was said last.
func (w *world) heartbeat() {
	for _, d := range w.devices {
		if !d.silent {
			w.report(d, d.sent.said)
		}
	}
}
