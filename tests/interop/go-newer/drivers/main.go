// Command drivers serves one of the task drivers that live as packages in the official Go module, of a newer version than the
// one in ../go, as an external plugin:
//
//	drivers raw_exec | exec | java | mock_driver
//
// or, as `forgetful`, one of our own (forgetful.go). That version is under the Business Source License: it is downloaded to be
// tested against, and nothing of it is in this repository or in what is built from it. What is newer: they read the machine's
// topology and cores, and both halves of a task's resources.
package main

import (
	"context"
	"fmt"
	"os"

	// First, as in the agent itself: what runs beside a task shall not initialise everything else.
	_ "github.com/hashicorp/nomad/drivers/shared/executor"

	"github.com/hashicorp/go-hclog"
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
	"forgetful":   newForgetful,
}

func main() {
	if len(os.Args) != 2 || served[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: drivers raw_exec|exec|java|mock_driver|forgetful")
		os.Exit(2)
	}
	plugins.ServeCtx(func(ctx context.Context, log hclog.Logger) interface{} {
		return served[os.Args[1]](ctx, log)
	})
}
