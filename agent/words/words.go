// Package words turns the facts that the elector reports into what the API shows. Warnings,
// refusals of commands, and the reason why there are no voters yet become texts for people;
// jobs and the words of elections become values of package api.
//
// Codes are stable, and docs/operations.md and docs/api.md list them. The texts
// may change with any version.
package words
