package api

import "time"

// Jobs answers GET /v1/jobs: the jobs of `doyen once` and `doyen cron`, sorted by name. They are what one voter
// has on disk. A leader may have written newer ones a moment ago.
type Jobs struct {
	Jobs []Job `json:"jobs"`
}

// Job is a job as its election's word describes it.
type Job struct {
	Election string  `json:"election"`
	Kind     string  `json:"kind"`              // cron, key or series
	Spec     string  `json:"spec,omitempty"`    // when the job runs; only for kind cron
	Zone     string  `json:"tz,omitempty"`      // the time zone of Spec; empty: UTC
	Done     string  `json:"done,omitempty"`    // all occurrences up to this one have ended or were passed over
	Running  *JobRun `json:"running,omitempty"` // the claimed occurrence, which may have started
	Last     *JobEnd `json:"last,omitempty"`    // the end of the occurrence that ended last
	Unknown  string  `json:"unknown,omitempty"` // the last occurrence that was passed over although nobody knows how it ended
	// Total counts the occurrences by how they ended, and the missed ones. Only jobs of kind cron have it.
	Total map[string]int `json:"total,omitempty"`
	// Missed is how many occurrences were passed over at the last write of the word. They never ran.
	Missed int        `json:"missed,omitempty"`
	Next   *time.Time `json:"next,omitempty"` // only for kind cron: when the next occurrence after Done is due
}

// JobRun is an occurrence that was claimed: a time in UTC, or a key.
type JobRun struct {
	Occurrence string    `json:"occurrence"`
	Term       uint64    `json:"term"`
	Try        int       `json:"try"` // from 1
	Since      time.Time `json:"since"`
	// Held is whether the election has a leader. If not, nothing runs, and the outcome is not on record yet.
	Held bool `json:"held"`
}

// JobEnd is how an occurrence ended.
type JobEnd struct {
	Occurrence string    `json:"occurrence"`
	Try        int       `json:"try"`
	End        string    `json:"end"` // finished, failed, timed out, stopped or unknown
	Code       int       `json:"code,omitempty"`
	When       time.Time `json:"when"`
}
