package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// policyDefault is what holds of a policy where it does not set a field that
// decides about devices; "" where nothing holds.
func policyDefault(field string) string {
	span := func(d time.Duration) string { return schema.Duration(d).String() }
	switch field {
	case "enabled":
		return "false"
	case "targetVersion":
		return "the daemon's own version"
	case "maxInFlight":
		return fmt.Sprint(planner.DefaultMaxInFlight)
	case "minAvailable":
		return fmt.Sprint(planner.DefaultMinAvailable)
	case "maxAttempts":
		return fmt.Sprint(planner.DefaultMaxAttempts)
	case "failureLimit":
		return fmt.Sprint(planner.DefaultFailureLimit)
	case "refusalLimit":
		return fmt.Sprintf("%d%%, at least %d", planner.DefaultRefusalPercent, planner.MinRefusals)
	case "minProtocol":
		return fmt.Sprint(planner.DefaultMinProtocol)
	case "backoff":
		return fmt.Sprintf("%s, times %g with each failure, at most %s", span(planner.DefaultBackoffBase), planner.DefaultBackoffFactor, span(planner.DefaultBackoffCap))
	case "offlineAfter":
		return "three of the device's own heartbeats, at least " + span(planner.MinOfflineAfter)
	case "absentAfter":
		return span(planner.DefaultAbsentAfter)
	}
	return ""
}

// defaultText says what holds where a document does not have a setting.
func defaultText(c Cause) string {
	field, unset := strings.CutSuffix(c.Setting, " is not set")
	if value := policyDefault(field); unset && value != "" && strings.HasPrefix(c.File, "policies/") {
		return c.Setting + ", so its default holds: " + value
	}
	return c.Setting + ", so its default holds"
}
