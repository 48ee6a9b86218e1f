package agentsync

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// Defaults of a Config.
const (
	// DefaultLimit bounds a delivery, in bytes: validation warns of a payload
	// from 1 MiB on, and a device has memory for a few dozen of those.
	DefaultLimit = 64 << 20
	// DefaultTimeout of one operation: a delivery of some megabytes over a
	// slow line.
	DefaultTimeout = 2 * time.Minute
)

// Config of a Control.
type Config struct {
	Remote     Target        // the fleet repository
	Reports    *Target       // where reports go; nil = Remote
	Device     string        // id
	DeviceRefs string        // prefix of delivery refs; "" = schema.DefaultDeviceRefs
	ReportRefs string        // prefix of report refs; "" = schema.DefaultReportRefs
	Limit      int64         // of what is read from one ref, bytes; 0 = DefaultLimit
	Timeout    time.Duration // of one operation; 0 = DefaultTimeout
	// Kept gives the digests of the payloads that the device has, which need
	// not come again; nil = none.
	Kept   func() []string
	Logger *slog.Logger // nil = none
}

// Control reads assignments and sends reports of one device.
type Control struct {
	device               string
	deviceRef, reportRef string
	limit                int64
	timeout              time.Duration
	log                  *slog.Logger
	remote, reports      *connection
	kept                 func() []string

	looking    sync.Mutex // one look at a time
	seen       look       // the newest
	wholly     bool       // the next look reads what the device keeps, too
	generation int64      // highest seen

	reporting sync.Mutex // one report at a time
	tip       string     // of the report ref
	tipURL    string     // where tip was seen
	tipKnown  bool
}

// New makes a Control; it connects to nothing yet.
func New(c Config) (*Control, error) {
	if c.Device == "" || c.Remote.URL == nil || c.Remote.Open == nil {
		return nil, errors.New("agentsync: device and remote are needed")
	}
	ctl := &Control{device: c.Device, limit: c.Limit, timeout: c.Timeout, log: c.Logger, kept: c.Kept, remote: &connection{target: c.Remote}}
	if ctl.reports = ctl.remote; c.Reports != nil {
		ctl.reports = &connection{target: *c.Reports}
	}
	if ctl.limit <= 0 {
		ctl.limit = DefaultLimit
	}
	if ctl.timeout <= 0 {
		ctl.timeout = DefaultTimeout
	}
	if ctl.log == nil {
		ctl.log = slog.New(slog.DiscardHandler)
	}
	prefix := func(p, def string) string {
		if p == "" {
			return def
		}
		return p
	}
	ctl.deviceRef = prefix(c.DeviceRefs, schema.DefaultDeviceRefs) + c.Device
	ctl.reportRef = prefix(c.ReportRefs, schema.DefaultReportRefs) + c.Device
	return ctl, nil
}

// Close closes what is open, after the operations that use it have ended.
func (c *Control) Close() {
	c.remote.close()
	c.reports.close()
}

// Answers is nil if the fleet repository gives an answer of any kind.
func (c *Control) Answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	s, release, err := c.remote.acquire(ctx)
	if err != nil {
		return fmt.Errorf("ask whether control answers: %w", err)
	}
	defer release()
	if err := s.remote.Answers(ctx); err != nil {
		return fmt.Errorf("ask whether control answers: %w", err)
	}
	return nil
}
