package sweep

// Keys of log records, so that one thing has one name in every line.
const (
	keyDevice   = "device"
	keyAttempt  = "attempt"
	keyVersion  = "version"
	keyOutcome  = "outcome"
	keyCode     = "code"
	keyReason   = "reason"
	keyRemedy   = "remedy"
	keyCommit   = "commit"
	keyOld      = "old"
	keyBranch   = "branch"
	keyRef      = "ref"
	keyTry      = "try"
	keyError    = "error"
	keyFile     = "file"
	keyInterval = "next"
	keySince    = "since"
	keyLastGood = "last_good"
	keyInstall  = "installation"
)

// news says whether text is news about a subject; "" clears it.
func (d *Daemon) news(subject, text string) bool {
	if d.said[subject] == text {
		return false
	}
	if text == "" {
		delete(d.said, subject)
	} else {
		d.said[subject] = text
	}
	return true
}
