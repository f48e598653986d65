// The official checks of a CSI plugin, as a program: sanity ENDPOINT DIRECTORY mount|block.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
)

type result struct{ failed bool }

func (r *result) Fail() { r.failed = true }

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "say: sanity ENDPOINT DIRECTORY mount|block")
		os.Exit(2)
	}
	config := sanity.NewTestConfig()
	config.Address = os.Args[1]
	config.TargetPath = filepath.Join(os.Args[2], "target")
	config.StagingPath = filepath.Join(os.Args[2], "staging")
	config.TestVolumeAccessType = os.Args[3]
	config.TestVolumeSize = 64 << 20
	config.TestVolumeExpandSize = 128 << 20
	config.TestNodeVolumeAttachLimit = true
	config.TestVolumeMutableParametersFile = filepath.Join(os.Args[2], "mutable.yaml")
	if err := os.WriteFile(config.TestVolumeMutableParametersFile, []byte("label: gold\n"), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	var r result
	sanity.Test(&r, config)
	if r.failed {
		os.Exit(1)
	}
}
