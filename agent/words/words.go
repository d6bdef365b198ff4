// Package words puts what the elector reports in facts into words for people:
// warnings, refusals of commands and why there are no voters yet. It is the one
// place for such texts, and holds nothing else.
//
// Codes are stable, and docs/operations.md and docs/api.md list them; the words
// may change with any version.
package words
