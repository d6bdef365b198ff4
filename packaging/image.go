package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nonroot is the number of the image's user. Images without a system commonly use this number.
const nonroot = 65532

// image writes a container image for all platforms: a tar file with an OCI layout. `skopeo copy oci-archive:…`
// and `podman load` read it, and so does Docker if it keeps images in containerd.
func (r *release) image(platforms []platform) error {
	if len(platforms) == 0 {
		return nil
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range platforms {
		image, err := p.image()
		if err != nil {
			return fmt.Errorf("%s: %w", p.arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: p.system, Architecture: p.arch},
		}})
	}
	// The layout has one entry, the index of all platforms: podman and skopeo refuse to choose among more.
	folder := filepath.Join(r.work, "image")
	to, err := layout.Write(folder, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err == nil {
		err = to.AppendIndex(index, layout.WithAnnotations(map[string]string{
			"org.opencontainers.image.ref.name": r.version,
			"io.containerd.image.name":          "docker.io/library/doyen:" + r.version, // the image's name in containerd, Docker and podman
		}))
	}
	if err != nil {
		return err
	}
	all := map[string]entry{}
	err = filepath.WalkDir(folder, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, at)
		if err != nil {
			return err
		}
		all[filepath.ToSlash(name)], err = read(at, 0o644)
		return err
	})
	if err != nil {
		return err
	}
	content, err := r.tar(all, "")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, fmt.Sprintf("doyen-%s-image.tar", r.version)), content, 0o644)
}

// image is the program and the few files that it needs.
func (p platform) image() (v1.Image, error) {
	program, err := p.build("linux", p.arch, false)
	if err != nil {
		return nil, err
	}
	binary, err := read(program, 0o755)
	if err != nil {
		return nil, err
	}
	folder := func(mode fs.FileMode, uid int) entry { return entry{mode: mode | fs.ModeDir, uid: uid} }
	text := func(s string) entry { return entry{content: []byte(s), mode: 0o644} }
	content, err := p.tar(map[string]entry{
		"etc": folder(0o755, 0), "run": folder(0o755, 0), "usr": folder(0o755, 0), "usr/bin": folder(0o755, 0), "var": folder(0o755, 0), "var/lib": folder(0o755, 0),
		"tmp":           folder(0o777|fs.ModeSticky, 0),
		"run/doyen":     folder(0o750, nonroot),
		"var/lib/doyen": folder(0o700, nonroot),
		"etc/passwd":    text(fmt.Sprintf("root:x:0:0:root:/:/sbin/nologin\ndoyen:x:%d:%d:doyen:/var/lib/doyen:/sbin/nologin\n", nonroot, nonroot)),
		"etc/group":     text(fmt.Sprintf("root:x:0:\ndoyen:x:%d:\n", nonroot)),
		"usr/bin/doyen": binary,
	}, "")
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer, MediaType: types.OCILayer,
		History: v1.History{Created: v1.Time{Time: p.made}, CreatedBy: "make dist"}})
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = p.system, p.arch, v1.Time{Time: p.made}
	file.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/doyen"},
		Cmd:        []string{"agent"},
		User:       fmt.Sprintf("%d:%d", nonroot, nonroot),
		WorkingDir: "/",
		Env:        []string{"PATH=/usr/bin", "DOYEN_DATA_DIR=/var/lib/doyen", "DOYEN_SOCKET=/run/doyen/doyen.sock"},
		Volumes:    map[string]struct{}{"/var/lib/doyen": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title": "doyen", "org.opencontainers.image.version": p.version,
			"org.opencontainers.image.revision": p.commit, "org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.source": "https://github.com/doyen-election/doyen",
		},
	}
	return mutate.ConfigFile(image, file)
}
