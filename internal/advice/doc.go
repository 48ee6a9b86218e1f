// Package advice finds what is right by every rule and yet not what somebody
// will have meant: limits that come to something else than they seem to say,
// windows that never open, freezes that are over.
//
// It refuses nothing and changes nothing: all that it finds are warnings, and
// the daemon does not ask for them, so that time alone never makes a fleet
// invalid. What makes a fleet invalid is the business of package schema.
//
// Start with [Check].
//
// It counts as the planner counts, by the planner's own arithmetic, over the
// devices of the repository: what their status is, it does not know. The same
// fleet and time give the same advice in the same order.
package advice
