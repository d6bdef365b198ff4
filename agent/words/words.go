// Package words turns the facts that the elector reports into words for people: warnings,
// refusals of commands, and why there are no voters yet. All such texts are here, and
// nothing else is.
//
// Codes are stable, and docs/operations.md and docs/api.md list them; the words
// may change with any version.
package words
