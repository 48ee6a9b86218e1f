// Package schema holds the kinds that people, the daemon and the devices
// exchange: their Go types, their JSON Schemas, the strict YAML reader, the
// checks across the files of a fleet repository, and rendering.
//
// It refuses what it does not know: unknown fields, duplicate keys, aliases,
// second documents, templates that could loop, paths that could lead out of
// the repository. It knows no git, no network and no clock: package repo reads
// revisions, package planner decides who moves.
//
// Start with [Loader.Load], which turns the files of one revision (a [Source])
// into a [Fleet]: every [Problem] that it has, each device with where it should
// go, and its rendered spec. [Decode] reads a single document, [Encode] writes
// one, [Rules] lists what is looked at, [JSONSchema] is what an editor wants.
//
// Everything is a function of the content: the same revision gives the same
// problems in the same order, and the same digests, whatever was loaded
// before. Digests are stable between versions of gitopsd: golden tests pin
// them, because a digest that moved would move the fleet. Whatever a revision
// holds, nothing panics, and each document costs bounded time and memory. A
// Loader is not safe for concurrent use; a Fleet is, and does not change.
package schema
