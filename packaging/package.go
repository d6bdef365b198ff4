package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// platform is a release for one system and processor.
type platform struct {
	*release
	system, arch string
}

// documents are the files and folders in every release, by their paths in the source tree.
var documents = []string{"README.md", "CHANGELOG.md", "LICENSE", "packaging/files/agent.yaml", "docs", "examples"}

var units = []string{"doyen.service", "doyen-act.service"}

// archive writes a tar.gz with the program, the manual, the completions and the documents.
func (p platform) archive() error {
	program, err := p.build(p.system, p.arch, p.system == "linux")
	if err != nil {
		return err
	}
	all := map[string]entry{}
	if all["bin/doyen"], err = read(program, 0o755); err != nil {
		return err
	}
	for at, content := range p.help {
		all["share/"+zshOf(at)] = entry{content: content, mode: 0o644}
	}
	for to, from := range p.documents() {
		if all["share/doc/doyen/"+to], err = read(from, modeOf(from)); err != nil {
			return err
		}
	}
	if p.system == "linux" {
		for _, unit := range units {
			if all["lib/systemd/system/"+unit], err = read(p.file(unit), 0o644); err != nil {
				return err
			}
		}
	}
	name := fmt.Sprintf("doyen-%s-%s-%s", p.version, p.system, p.arch)
	content, err := p.tar(all, name+"/")
	if err != nil {
		return err
	}
	if content, err = compress(content); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.out, name+".tar.gz"), content, 0o644)
}

// documents returns the files to deliver, by their names in the release's folder of documents.
func (r *release) documents() map[string]string {
	found := map[string]string{}
	for _, document := range documents {
		from := filepath.Join(r.root, document)
		_ = filepath.WalkDir(from, func(at string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(at, ".go") {
				return err
			}
			to := filepath.Base(at)
			if relative, err := filepath.Rel(from, at); err == nil && relative != "." {
				to = document + "/" + filepath.ToSlash(relative)
			}
			found[to] = at
			return nil
		})
	}
	return found
}

func (r *release) file(name string) string { return filepath.Join(r.root, "packaging/files", name) }

// entry is a file or directory in an archive. The mode shows which.
type entry struct {
	content []byte
	mode    os.FileMode
	uid     int
}

func read(from string, mode os.FileMode) (entry, error) {
	content, err := os.ReadFile(from)
	return entry{content: content, mode: mode}, err
}

// modeOf is the mode with which a file is delivered. As in git, it depends only on whether the file is executable.
func modeOf(path string) os.FileMode {
	if info, err := os.Stat(path); err == nil && info.Mode()&0o100 != 0 {
		return 0o755
	}
	return 0o644
}

// tar writes the entries in the order of their names, with the time of the commit.
func (r *release) tar(all map[string]entry, below string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e := all[name]
		header := &tar.Header{Name: below + name, Mode: int64(e.mode.Perm()), Size: int64(len(e.content)), ModTime: r.made,
			Typeflag: tar.TypeReg, Uid: e.uid, Gid: e.uid, Format: tar.FormatPAX}
		if e.mode&os.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
		if e.mode.IsDir() {
			header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// pack writes a package: a deb or an rpm.
func (p platform) pack(kind string) error {
	packager, err := nfpm.Get(kind)
	if err != nil {
		return err
	}
	info, err := p.info(kind)
	if err != nil {
		return err
	}
	if err := nfpm.PrepareForPackager(info, kind); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := packager.Package(info, &b); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.out, packager.ConventionalFileName(info)), b.Bytes(), 0o644)
}

// info describes the package: its files, and the scripts of its installation and removal.
func (p platform) info(kind string) (*nfpm.Info, error) {
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "doyen", Arch: p.arch, Platform: "linux", Version: p.version, Release: "1", Section: "admin", Priority: "optional",
		Maintainer: "Doyen <doyen@doyen-election.example>", Vendor: "Doyen", Homepage: "https://github.com/doyen-election/doyen", License: "Apache-2.0",
		Description: "Leader election among hosts with no central store\n" +
			"An agent on each host elects one of them: a majority of voters, a lease, and a\nfencing token. Programs ask over a socket, or run only where their host leads.",
		MTime: p.made, DisableGlobbing: true,
	})
	info.RPM.BuildHost, info.RPM.Summary = "localhost", "Leader election among hosts with no central store"
	info.Recommends = []string{"systemd"}
	info.Scripts = nfpm.Scripts{PostInstall: p.file("postinstall.sh"), PreRemove: p.file("preremove.sh"), PostRemove: p.file("postremove.sh")}
	program, err := p.build("linux", p.arch, true)
	if err != nil {
		return nil, err
	}
	add := func(from, to string, mode os.FileMode) {
		info.Contents = append(info.Contents, &files.Content{Source: from, Destination: to, FileInfo: &files.ContentFileInfo{Mode: mode, Owner: "root", Group: "root", MTime: p.made}})
	}
	add(program, "/usr/bin/doyen", 0o755)
	for _, unit := range units {
		add(p.file(unit), "/usr/lib/systemd/system/"+unit, 0o644)
	}
	add(p.file("sysusers.conf"), "/usr/lib/sysusers.d/doyen.conf", 0o644)
	add(p.file("tmpfiles.conf"), "/usr/lib/tmpfiles.d/doyen.conf", 0o644)
	for to, from := range p.documents() {
		if kind == "deb" && to == "LICENSE" {
			to = "copyright" // Debian's name for it
		}
		add(from, "/usr/share/doc/doyen/"+to, modeOf(from))
	}
	for at, content := range p.help {
		if kind != "deb" {
			at = zshOf(at)
		}
		from := filepath.Join(p.work, kind, filepath.FromSlash(at))
		if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(from, content, 0o644); err != nil {
			return nil, err
		}
		add(from, path.Join("/usr/share", at), 0o644)
	}
	slices.SortFunc(info.Contents, func(a, b *files.Content) int { return strings.Compare(a.Destination, b.Destination) })
	return info, nil
}
