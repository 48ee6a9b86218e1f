// Package schema holds the kinds that people, the daemon and the devices
// exchange: their Go types, their JSON Schemas, the strict YAML reader, the
// checks across the files of a fleet repository, and rendering.
//
// It refuses what it does not know: unknown fields, duplicate keys, aliases,
// second documents. It knows no git, no network and no clock; package repo
// reads revisions, package planner decides who moves.
//
// Start with [Loader.Load], which turns the files of one revision into a
// [Fleet] with every [Problem] that it has, and [Fleet.Render], which gives
// the desired spec of one device. [Decode] reads a single document.
//
// Rendering and digests are deterministic and stable between versions of
// gitopsd: golden tests pin them, because a digest that moved would move the
// fleet. A Loader is not safe for concurrent use; a Fleet is, once loaded.
package schema
