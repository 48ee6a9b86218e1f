// Package reconcile brings a device to its assigned spec, or back.
package reconcile
