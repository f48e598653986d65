// Command host is a host program on the official Go packages: it runs Callboard's reference driver and a few tasks
// through it, and says in one line for each step what it saw. It ends with status 1 at the first thing that is wrong.
//
//	host run    CALLBOARD DIRECTORY    the whole life, with a driver that is killed in the middle
//	host begin  CALLBOARD DIRECTORY    starts a driver and a task, leaves both running, and ends
//	host resume DIRECTORY              finds both again, and ends them
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/nomad/plugins/base"
	"github.com/hashicorp/nomad/plugins/drivers"
	"github.com/hashicorp/nomad/plugins/drivers/proto"
)

// timeout is far more than any step takes.
const timeout = 30 * time.Second

func main() {
	steps := map[string]func([]string) error{"run": run, "begin": begin, "resume": resume}
	if len(os.Args) < 3 || steps[os.Args[1]] == nil {
		fail(errors.New("usage: host run|begin CALLBOARD DIRECTORY, host resume DIRECTORY"))
	}
	if err := steps[os.Args[1]](os.Args[2:]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Println("failed:", err)
	os.Exit(1)
}

func saw(format string, values ...interface{}) {
	fmt.Printf(format+"\n", values...)
}

// driver is a running plugin, dispensed.
type driver struct {
	drivers.DriverPlugin
	client *plugin.Client
	base   base.BasePlugin
	pid    int
}

func connect(config *plugin.ClientConfig) (*driver, error) {
	logger := hclog.New(&hclog.LoggerOptions{Name: "host", Level: hclog.Trace, Output: os.Stderr})
	config.HandshakeConfig = base.Handshake
	config.Plugins = map[string]plugin.Plugin{
		base.PluginTypeBase:   &base.PluginBase{},
		base.PluginTypeDriver: drivers.NewDriverPlugin(nil, logger),
	}
	config.AllowedProtocols = []plugin.Protocol{plugin.ProtocolGRPC}
	config.Logger = logger
	client := plugin.NewClient(config)
	protocol, err := client.Client()
	if err != nil {
		client.Kill()
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	if err := protocol.Ping(); err != nil {
		return nil, fmt.Errorf("no answer to a ping: %w", err)
	}
	asBase, err := protocol.Dispense(base.PluginTypeBase)
	if err != nil {
		return nil, err
	}
	asDriver, err := protocol.Dispense(base.PluginTypeDriver)
	if err != nil {
		return nil, err
	}
	return &driver{
		DriverPlugin: asDriver.(drivers.DriverPlugin), client: client, base: asBase.(base.BasePlugin),
		pid: client.ReattachConfig().Pid,
	}, nil
}

func launch(callboard string) (*driver, error) {
	return connect(&plugin.ClientConfig{Cmd: exec.Command(callboard, "plugin", "exec")})
}

// task is the configuration of a task that runs a shell script.
func task(directory, id, script string) (*drivers.TaskConfig, error) {
	work := filepath.Join(directory, id)
	if err := os.MkdirAll(filepath.Join(work, "main"), 0o700); err != nil {
		return nil, err
	}
	config := &drivers.TaskConfig{
		ID: id, Name: "main", AllocID: "alloc-" + id, AllocDir: work,
		Env:        map[string]string{"GREETING": "good evening"},
		StdoutPath: filepath.Join(work, "stdout"), StderrPath: filepath.Join(work, "stderr"),
	}
	return config, config.EncodeConcreteDriverConfig(map[string]interface{}{
		"command": "/bin/sh", "args": []string{"-c", script},
	})
}

func wait(from *driver, id string) (*drivers.ExitResult, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	results, err := from.WaitTask(ctx, id)
	if err != nil {
		return nil, err
	}
	result := <-results
	if result == nil {
		return nil, fmt.Errorf("no result for task %s", id)
	}
	return result, result.Err
}

func expectExit(from *driver, id string, code, signal int) error {
	result, err := wait(from, id)
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", id, err)
	}
	if result.ExitCode != code || result.Signal != signal {
		return fmt.Errorf("%s ended with code %d and signal %d, not %d and %d", id, result.ExitCode, result.Signal, code, signal)
	}
	saw("%s exited: code %d, signal %d", id, result.ExitCode, result.Signal)
	return nil
}

// until reads events until one of this task says this.
func until(events <-chan *drivers.TaskEvent, id, message string) error {
	late := time.After(timeout)
	for {
		select {
		case event, isOpen := <-events:
			if !isOpen {
				return fmt.Errorf("the events ended before %q of %s", message, id)
			}
			if event.Err != nil {
				return fmt.Errorf("the events failed: %w", event.Err)
			}
			if event.TaskID == id && strings.Contains(strings.ToLower(event.Message), message) {
				saw("event of %s: %s", id, message)
				return nil
			}
		case <-late:
			return fmt.Errorf("no event %q of %s", message, id)
		}
	}
}

func run(arguments []string) error {
	if len(arguments) != 2 {
		return errors.New("usage: host run CALLBOARD DIRECTORY")
	}
	callboard, directory := arguments[0], arguments[1]
	first, err := launch(callboard)
	if err != nil {
		return err
	}
	defer first.client.Kill()
	if err := introduce(first); err != nil {
		return err
	}
	if err := live(first, directory); err != nil {
		return err
	}
	handle, err := outlive(first, directory)
	if err != nil {
		return err
	}
	second, err := launch(callboard)
	if err != nil {
		return err
	}
	defer second.client.Kill()
	if err := recovered(second, handle); err != nil {
		return err
	}
	second.client.Kill()
	if !second.client.Exited() {
		return errors.New("the driver did not end")
	}
	saw("driver ended")
	return nil
}

// introduce asks who it is, configures it, and reads what it can do.
func introduce(to *driver) error {
	info, err := to.base.PluginInfo()
	if err != nil {
		return err
	}
	saw("plugin %s, type %s, api %v", info.Name, info.Type, info.PluginApiVersions)
	if schema, err := to.base.ConfigSchema(); err != nil || schema == nil {
		return fmt.Errorf("no schema: %w", err)
	}
	if err := to.base.SetConfig(&base.Config{ApiVersion: drivers.ApiVersion010}); err != nil {
		return err
	}
	capabilities, err := to.Capabilities()
	if err != nil {
		return err
	}
	saw("capabilities: signals %v, exec %v", capabilities.SendSignals, capabilities.Exec)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	reports, err := to.Fingerprint(ctx)
	if err != nil {
		return err
	}
	report := <-reports
	if report == nil || report.Err != nil || report.Health != drivers.HealthStateHealthy {
		return fmt.Errorf("not healthy: %+v", report)
	}
	if attribute := report.Attributes["driver.callboard_exec"]; attribute == nil || attribute.Bool == nil || !*attribute.Bool {
		return fmt.Errorf("attributes without driver.callboard_exec: %v", report.Attributes)
	}
	saw("healthy")
	return nil
}

// live runs one task through everything that can be done with it.
func live(with *driver, directory string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	events, err := with.TaskEvents(ctx)
	if err != nil {
		return err
	}
	config, err := task(directory, "task-1", `trap 'exit 5' USR1; echo "$GREETING"; while :; do sleep 0.05; done`)
	if err != nil {
		return err
	}
	handle, _, err := with.StartTask(config)
	if err != nil {
		return err
	}
	if handle.State != drivers.TaskStateRunning || len(handle.DriverState) == 0 {
		return fmt.Errorf("a handle that cannot be recovered from: %+v", handle)
	}
	if err := until(events, "task-1", "started"); err != nil {
		return err
	}
	if err := readOutput(config.StdoutPath, "good evening\n"); err != nil {
		return err
	}
	status, err := with.InspectTask("task-1")
	if err != nil {
		return err
	}
	saw("task-1 is %s", status.State)
	if err := readStats(with); err != nil {
		return err
	}
	if err := runBeside(with); err != nil {
		return err
	}
	if err := with.SignalTask("task-1", "SIGUSR1"); err != nil {
		return err
	}
	if err := expectExit(with, "task-1", 5, 0); err != nil {
		return err
	}
	if err := until(events, "task-1", "exited"); err != nil {
		return err
	}
	if err := with.DestroyTask("task-1", false); err != nil {
		return err
	}
	if _, err := with.InspectTask("task-1"); err == nil {
		return errors.New("a destroyed task can still be inspected")
	}
	saw("task-1 destroyed")
	return stopped(with, directory)
}

func readOutput(path, expected string) error {
	for began := time.Now(); time.Since(began) < timeout; time.Sleep(10 * time.Millisecond) {
		if text, err := os.ReadFile(path); err == nil && string(text) == expected {
			saw("output: %s", strings.TrimSpace(expected))
			return nil
		}
	}
	return fmt.Errorf("%s never holds %q", path, expected)
}

func readStats(of *driver) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	reports, err := of.TaskStats(ctx, "task-1", 50*time.Millisecond)
	if err != nil {
		return err
	}
	for number := 0; number < 2; number++ {
		report := <-reports
		if report == nil || report.ResourceUsage == nil || report.ResourceUsage.MemoryStats.RSS == 0 || len(report.Pids) == 0 {
			return fmt.Errorf("stats without memory or processes: %+v", report)
		}
	}
	saw("stats: memory and processes")
	return nil
}

// runBeside runs commands in the context of the task.
func runBeside(with *driver) error {
	result, err := with.ExecTask("task-1", []string{"/bin/sh", "-c", `echo "$GREETING"; echo no >&2; exit 3`}, timeout)
	if err != nil {
		return err
	}
	if string(result.Stdout) != "good evening\n" || string(result.Stderr) != "no\n" || result.ExitResult.ExitCode != 3 {
		return fmt.Errorf("exec gave %+v", result)
	}
	saw("exec: code 3")
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	stream := &conversation{words: []string{"who is there", "none"}}
	raw := with.DriverPlugin.(drivers.ExecTaskStreamingRawDriver)
	if err := raw.ExecTaskStreamingRaw(ctx, "task-1", []string{"/bin/cat"}, false, stream); err != nil {
		return fmt.Errorf("streaming: %w", err)
	}
	if stream.heard.String() != "who is therenone" || !stream.hasExited || stream.code != 0 {
		return fmt.Errorf("streaming gave %q, exited %v, code %d", stream.heard.String(), stream.hasExited, stream.code)
	}
	saw("exec streaming: code 0")
	return nil
}

// conversation is the host's end of a streamed command: it says its words, closes, and keeps what it hears.
type conversation struct {
	words     []string
	isClosed  bool
	heard     strings.Builder
	hasExited bool
	code      int32
}

func (c *conversation) Recv() (*drivers.ExecTaskStreamingRequestMsg, error) {
	request := &drivers.ExecTaskStreamingRequestMsg{Stdin: &proto.ExecTaskStreamingIOOperation{}}
	switch {
	case len(c.words) > 0:
		request.Stdin.Data, c.words = []byte(c.words[0]), c.words[1:]
	case !c.isClosed:
		request.Stdin.Close, c.isClosed = true, true
	default:
		return nil, io.EOF
	}
	return request, nil
}

func (c *conversation) Send(response *drivers.ExecTaskStreamingResponseMsg) error {
	if response.Stdout != nil {
		c.heard.Write(response.Stdout.Data)
	}
	if response.Exited {
		c.hasExited = true
		c.code = response.Result.GetExitCode()
	}
	return nil
}

// stopped starts a task that does not listen, and stops it by force.
func stopped(with *driver, directory string) error {
	config, err := task(directory, "task-2", `trap '' TERM; while :; do sleep 0.05; done`)
	if err != nil {
		return err
	}
	if _, _, err := with.StartTask(config); err != nil {
		return err
	}
	if err := with.StopTask("task-2", 300*time.Millisecond, "SIGTERM"); err != nil {
		return err
	}
	result, err := wait(with, "task-2")
	if err != nil {
		return err
	}
	// A shell that has not set its trap yet ends by the first signal.
	if result.Signal != int(syscall.SIGKILL) && result.Signal != int(syscall.SIGTERM) {
		return fmt.Errorf("stopped with code %d and signal %d", result.ExitCode, result.Signal)
	}
	saw("task-2 stopped")
	return with.DestroyTask("task-2", false)
}

// outlive starts a task, and kills the driver under it.
func outlive(first *driver, directory string) (*drivers.TaskHandle, error) {
	config, err := task(directory, "task-3", `while ! [ -e "`+filepath.Join(directory, "go")+`" ]; do sleep 0.05; done; exit 7`)
	if err != nil {
		return nil, err
	}
	handle, _, err := first.StartTask(config)
	if err != nil {
		return nil, err
	}
	if err := syscall.Kill(first.pid, syscall.SIGKILL); err != nil {
		return nil, err
	}
	for began := time.Now(); !first.client.Exited(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > timeout {
			return nil, errors.New("a killed driver goes on")
		}
	}
	saw("driver killed")
	return handle, os.WriteFile(filepath.Join(directory, "go"), nil, 0o600)
}

func recovered(second *driver, handle *drivers.TaskHandle) error {
	if err := second.RecoverTask(handle); err != nil {
		return fmt.Errorf("cannot recover: %w", err)
	}
	saw("task-3 recovered")
	if err := expectExit(second, "task-3", 7, 0); err != nil {
		return err
	}
	return second.DestroyTask("task-3", false)
}

// record is what a host keeps of a driver that is to outlive it.
type record struct {
	Network string
	Address string
	Pid     int
}

func begin(arguments []string) error {
	if len(arguments) != 2 {
		return errors.New("usage: host begin CALLBOARD DIRECTORY")
	}
	started, err := launch(arguments[0])
	if err != nil {
		return err
	}
	config, err := task(arguments[1], "task-4", `trap 'exit 9' TERM; while :; do sleep 0.05; done`)
	if err != nil {
		return err
	}
	if _, _, err := started.StartTask(config); err != nil {
		return err
	}
	reattach := started.client.ReattachConfig()
	text, err := json.Marshal(record{reattach.Addr.Network(), reattach.Addr.String(), reattach.Pid})
	if err != nil {
		return err
	}
	saw("left behind: driver and task-4")
	return os.WriteFile(filepath.Join(arguments[1], "record"), text, 0o600)
}

func resume(arguments []string) error {
	text, err := os.ReadFile(filepath.Join(arguments[0], "record"))
	if err != nil {
		return err
	}
	var kept record
	if err := json.Unmarshal(text, &kept); err != nil {
		return err
	}
	found, err := connect(&plugin.ClientConfig{Reattach: &plugin.ReattachConfig{
		Protocol: plugin.ProtocolGRPC, ProtocolVersion: 2, Pid: kept.Pid,
		Addr: &net.UnixAddr{Net: kept.Network, Name: kept.Address},
	}})
	if err != nil {
		return err
	}
	saw("reattached")
	status, err := found.InspectTask("task-4")
	if err != nil {
		return err
	}
	saw("task-4 is %s", status.State)
	if err := found.StopTask("task-4", timeout, "SIGTERM"); err != nil {
		return err
	}
	if err := expectExit(found, "task-4", 9, 0); err != nil {
		return err
	}
	if err := found.DestroyTask("task-4", false); err != nil {
		return err
	}
	found.client.Kill()
	for began := time.Now(); isRunning(kept.Pid); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > timeout {
			return errors.New("the driver did not end")
		}
	}
	saw("driver ended")
	return nil
}

// isRunning tells whether there is such a process, and it is no zombie of a parent that does not reap.
func isRunning(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}
