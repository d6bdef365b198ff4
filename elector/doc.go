// Package elector composes selection, detection and authority into one agent's
// part in every election: a pure step from an instant and an input to an
// ordered output.
package elector
