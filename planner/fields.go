package planner

// fields are those of a policy's spec that decide about a code, where it is
// always the same one.
var fields = map[Code]string{
	Disabled:    "enabled",
	NoTarget:    fieldTarget,
	Newer:       fieldTarget,
	ByHand:      "minProtocol",
	CodeFailed:  "maxAttempts",
	CodeBackoff: "backoff",
	Offline:     "offlineAfter",
	Absent:      "absentAfter",
	Paused:      "paused",
	Halted:      fieldFailures,
	FleetGuard:  "minAvailable",
}

const (
	fieldTarget   = "targetVersion"
	fieldFailures = "failureLimit"
	fieldRefusals = "refusalLimit"
	fieldInFlight = "maxInFlight"
	fieldInterval = "minInterval"
	fieldPin      = "pin"
)

// located is a device's verdict with the field that decides.
func (d *device) located() finding {
	f := d.verdict
	if f.field == "" {
		f.field = fields[f.code]
	}
	switch {
	case f.field == "":
	case f.field == fieldTarget && d.Pinned:
		f.field, f.in = fieldPin, InDevice
	case f.in == "":
		f.in = InPolicy
	}
	return f
}
