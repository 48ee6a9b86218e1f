// Package sweep is the daemon's pass over a fleet: fetch, repair, guard,
// validate, render, plan, publish; and the loop around it.
package sweep
