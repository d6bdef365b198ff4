// Package jobsim searches simulated worlds for a job that starts an occurrence twice, or passes over
// one in silence. It plays the product's own internal/jobs.
//
// A world has three hosts whose wall clocks are up to 60 s wrong, one cron job, and a register with
// the guarantees of an election's word: only the leader writes, a write replaces the text that it
// names, and one that was not acknowledged may count or not, as the next leader's rewriting settles it.
// Leaderships follow one another by a lease. Runners, agents and hosts die, links are cut, leaderships
// are handed over and terms rise, half of the time within a second of the minute at which an
// occurrence is due; in some worlds clocks jump. Then the world heals, and is judged:
//
//   - No occurrence is started while a former term holds or its command lives. It starts once; with
//     Rerun again only in a higher term and as a higher try.
//   - Every occurrence from the first one that a leader has waited for has a report of its end, or
//     of why it never ran.
//   - In the end the job goes on.
//
// It does not simulate how the word is kept (testbed/simulation does), nor processes that outlive
// their lease (testbed/soak).
package jobsim
