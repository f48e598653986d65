// Command starts is a host on the official Go packages that starts tasks through the driver raw_exec and says how long each start
// took, in milliseconds, on a line of its own:
//
//	starts DRIVERS DIRECTORY
//
// DRIVERS is the program in ../drivers. A start is asked for by a line on standard input, so that two hosts can be measured in
// turn. It takes what a client of this kind does for one: the task's directories, its two log pipes with a reader each, StartTask.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/nomad/nomad/structs"
	"github.com/hashicorp/nomad/plugins/base"
	"github.com/hashicorp/nomad/plugins/drivers"
)

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: starts DRIVERS DIRECTORY"))
	}
	driver, client, err := launch(os.Args[1])
	if err != nil {
		fail(err)
	}
	orders := bufio.NewScanner(os.Stdin)
	for number := 0; orders.Scan(); number++ {
		took, err := start(driver, filepath.Join(os.Args[2], fmt.Sprint(number)), number)
		if err != nil {
			client.Kill()
			fail(err)
		}
		fmt.Printf("%.3f\n", float64(took.Microseconds())/1000)
	}
	client.Kill()
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "failed:", err)
	os.Exit(1)
}

func launch(program string) (drivers.DriverPlugin, *plugin.Client, error) {
	logger := hclog.New(&hclog.LoggerOptions{Level: hclog.Error, Output: os.Stderr})
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: base.Handshake, Cmd: exec.Command(program, "raw_exec"), Logger: logger,
		Plugins: map[string]plugin.Plugin{
			base.PluginTypeBase: &base.PluginBase{}, base.PluginTypeDriver: drivers.NewDriverPlugin(nil, logger),
		},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
	})
	protocol, err := client.Client()
	if err != nil {
		return nil, client, err
	}
	asBase, err := protocol.Dispense(base.PluginTypeBase)
	if err != nil {
		return nil, client, err
	}
	var written []byte
	if err := base.MsgPackEncode(&written, map[string]bool{"enabled": true}); err != nil {
		return nil, client, err
	}
	config := &base.Config{
		ApiVersion: drivers.ApiVersion010, PluginConfig: written,
		AgentConfig: &base.AgentConfig{Driver: &base.ClientDriverConfig{ClientMinPort: 14000, ClientMaxPort: 14512}},
	}
	if err := asBase.(base.BasePlugin).SetConfig(config); err != nil {
		return nil, client, err
	}
	asDriver, err := protocol.Dispense(base.PluginTypeDriver)
	if err != nil {
		return nil, client, err
	}
	return asDriver.(drivers.DriverPlugin), client, nil
}

func start(driver drivers.DriverPlugin, allocation string, number int) (time.Duration, error) {
	began := time.Now()
	id := fmt.Sprintf("%08d-0000-0000-0000-000000000000", number)
	logs := filepath.Join(allocation, "alloc", "logs")
	for _, directory := range []string{logs, filepath.Join(allocation, "web", "local"), filepath.Join(allocation, "web", "secrets")} {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return 0, err
		}
	}
	config := &drivers.TaskConfig{
		ID: id + "/web/00000001", Name: "web", AllocID: id, AllocDir: allocation,
		Env: map[string]string{
			"PATH": os.Getenv("PATH"), "NOMAD_ALLOC_ID": id, "NOMAD_TASK_NAME": "web", "NOMAD_PARENT_CGROUP": "nomad.slice",
			"NOMAD_ALLOC_DIR": filepath.Join(allocation, "alloc"), "NOMAD_TASK_DIR": filepath.Join(allocation, "web", "local"),
			"NOMAD_SECRETS_DIR": filepath.Join(allocation, "web", "secrets"),
		},
		StdoutPath: filepath.Join(logs, ".web.stdout.fifo"), StderrPath: filepath.Join(logs, ".web.stderr.fifo"),
		Resources: &drivers.Resources{
			NomadResources: &structs.AllocatedTaskResources{
				Cpu: structs.AllocatedCpuResources{CpuShares: 100}, Memory: structs.AllocatedMemoryResources{MemoryMB: 300},
			},
			LinuxResources: &drivers.LinuxResources{CPUShares: 100, MemoryLimitBytes: 300 << 20, PercentTicks: 0.05},
		},
	}
	for _, pipe := range []string{config.StdoutPath, config.StderrPath} {
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			return 0, err
		}
		go func() {
			if reader, err := os.Open(pipe); err == nil {
				_, _ = io.Copy(io.Discard, reader)
			}
		}()
	}
	if err := config.EncodeConcreteDriverConfig(map[string]interface{}{"command": "/bin/sleep", "args": []string{"1000"}}); err != nil {
		return 0, err
	}
	if _, _, err := driver.StartTask(config); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if err := driver.StopTask(config.ID, 5*time.Second, "SIGKILL"); err != nil {
		return 0, err
	}
	return took, driver.DestroyTask(config.ID, true)
}
