package hosts

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const productPackage = "github.com/doyen-election/doyen/cmd/doyen"

// Build builds the product as it is shipped, stripped, into dir. It needs the
// go command and a working directory inside the source tree.
func Build(ctx context.Context, dir string) (Binary, error) {
	path := filepath.Join(dir, "doyen")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "urfave_cli_no_docs,nethttpomithttp2", "-ldflags", "-s -w", "-o", path, productPackage)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return Binary{}, fmt.Errorf("build %s: %w\n%s", productPackage, err, bytes.TrimSpace(out))
	}
	return Binary{Path: path}, nil
}
