package page

import (
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
)

// manual is where the docs can be read. The packages install the docs on each host too, but a
// browser on another host can't open those files.
const manual = "https://github.com/doyen-election/doyen/blob/main/docs/operations.md#"

// trouble is something that an operator should repair.
type trouble struct {
	class, text string
	link, page  string // the text of the link to the docs, and where it leads
	hosts       []string
	since       time.Time
}

// grave are the codes of warnings that cost a leader or a vote now.
var grave = []string{"quorum_lost", "no_candidates", "disk_failing", "data_dir_older", "data_dir_shared", "same_identity"}

// troubles returns what is wrong on any host, the worst first. Equal reports of several hosts are one trouble.
func (f Facts) troubles() (all []trouble) {
	add := func(t trouble, host string) {
		i := slices.IndexFunc(all, func(o trouble) bool { return o.text == t.text && o.page == t.page })
		if i < 0 {
			i, all = len(all), append(all, t)
		}
		if all[i].hosts = append(all[i].hosts, host); t.since.Before(all[i].since) {
			all[i].since = t.since
		}
	}
	down, alive := slices.Clone(f.Missing), map[string]bool{}
	for _, m := range f.Members {
		alive[m.Name] = alive[m.Name] || m.Status == api.StatusAlive
	}
	for _, m := range f.Members {
		if m.Status == api.StatusDead && !alive[m.Name] && !slices.Contains(down, m.Name) {
			down = append(down, m.Name)
		}
		if m.Status == api.StatusAlive && m.Drained {
			add(trouble{class: "warn", text: "drained, so it votes and can't be elected; to end that: doyen drain off " + m.Name, link: "about drains", page: "tasks"}, m.Name)
		}
	}
	for _, name := range down {
		add(trouble{class: "bad", text: "no answer; look there at systemctl status doyen, and at the network", link: "when something is wrong", page: "when-something-is-wrong"}, name)
	}
	for _, e := range f.Elections {
		if e.Leader == nil && e.State != api.StateIdle && len(f.Elections) > 1 {
			add(trouble{class: "bad", text: "nobody leads this election", link: "what the states mean", page: "when-something-is-wrong"}, e.Election)
		}
	}
	for _, o := range append([]api.AgentReport{{Name: f.Agent.Name, Warnings: f.Agent.Warnings}}, f.Others...) {
		for _, w := range o.Warnings {
			if w.Code != "drained" { // the loop over the members has added each drain; this warning comes only after a day
				add(trouble{class: map[bool]string{true: "bad", false: "warn"}[slices.Contains(grave, w.Code)], text: w.Message, since: w.Since, link: "what to do about " + w.Code, page: "warnings:~:text=" + w.Code}, o.Name)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b trouble) int { return strings.Compare(a.class, b.class) })
	return all
}

// attention is the HTML of the troubles. It also names the agents that have reported their warnings.
func (f Facts) attention() raw {
	asked, list := []string{f.Agent.Name}, raw("")
	all := f.troubles()
	for _, o := range f.Others {
		if o.Reached {
			asked = append(asked, o.Name)
		}
	}
	slices.Sort(asked)
	note := put("<span class=\"soft\">Asked for warnings: %s.</span>", strings.Join(asked, ", "))
	for _, t := range all[:min(len(all), pageRows)] {
		since := raw("")
		if !t.since.IsZero() {
			since = put(" since %s,", stamp(t.since))
		}
		list += put("<li class=\"%s\"><b>%s:</b> <span class=\"text\">%s</span> <span class=\"soft\">–%s <a href=\"%s%s\">%s</a></span></li>\n", t.class, strings.Join(t.hosts, ", "), t.text, since, manual, t.page, t.link)
	}
	list += more(len(all)-pageRows, "warnings")
	if list == "" {
		return put("<p>%s %s</p>\n", state("good", "Nothing needs attention."), note)
	}
	return put("<h2>Needs attention</h2>\n<ul>%s</ul>\n<p class=\"small\">%s</p>\n", list, note)
}
