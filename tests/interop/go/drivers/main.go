// Command drivers serves one of the task drivers that live as packages in the official Go module, as an external plugin:
//
//	drivers raw_exec | exec | java | mock_driver | docker
//
// Nothing of them is changed. A driver runs its own executable again for each task (as `executor`, and inside of that as
// `libcontainer-shim`), and docker's as `docker_logger`: the packages answer to those arguments themselves, as soon as they are
// imported and before main begins.
package main

import (
	"context"
	"fmt"
	"os"

	// First, as in the agent itself: what runs beside a task shall not initialise everything else.
	_ "github.com/hashicorp/nomad/drivers/docker/docklog"
	_ "github.com/hashicorp/nomad/drivers/shared/executor"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/nomad/drivers/docker"
	"github.com/hashicorp/nomad/drivers/exec"
	"github.com/hashicorp/nomad/drivers/java"
	"github.com/hashicorp/nomad/drivers/mock"
	"github.com/hashicorp/nomad/drivers/rawexec"
	"github.com/hashicorp/nomad/plugins"
	"github.com/hashicorp/nomad/plugins/drivers"
)

var served = map[string]func(context.Context, hclog.Logger) drivers.DriverPlugin{
	"raw_exec":    rawexec.NewRawExecDriver,
	"exec":        exec.NewExecDriver,
	"java":        java.NewDriver,
	"mock_driver": mock.NewMockDriver,
	"docker":      docker.NewDockerDriver,
}

func main() {
	if len(os.Args) != 2 || served[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: drivers raw_exec|exec|java|mock_driver|docker")
		os.Exit(2)
	}
	plugins.ServeCtx(func(ctx context.Context, log hclog.Logger) interface{} {
		return served[os.Args[1]](ctx, log)
	})
}
