// Command driver is a task driver on the official Go SDK: what Callboard's host must be able to run.
//
// Its tasks live inside of it: each says its text into its standard output, sleeps, and ends with the exit code that its
// configuration names. It announces every change as a task event, and nothing of it survives its own end.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/nomad/drivers/shared/eventer"
	"github.com/hashicorp/nomad/plugins"
	"github.com/hashicorp/nomad/plugins/base"
	"github.com/hashicorp/nomad/plugins/drivers"
	"github.com/hashicorp/nomad/plugins/shared/hclspec"
	pstructs "github.com/hashicorp/nomad/plugins/shared/structs"
)

const (
	name             = "echo"
	version          = "1.2.3"
	fingerprintEvery = 5 * time.Second
	handleVersion    = 1
)

// pluginConfig is what an operator can say to the driver.
type pluginConfig struct {
	Enabled bool   `codec:"enabled"`
	Greeter string `codec:"greeter"`
}

// taskConfig is what a task can say.
type taskConfig struct {
	Text     string `codec:"text"`
	Sleep    string `codec:"sleep"`
	ExitCode int    `codec:"exit_code"`
}

// task is one that runs, or has run.
type task struct {
	config    *drivers.TaskConfig
	startedAt time.Time
	signals   chan string
	done      chan struct{}

	lock    sync.Mutex
	endedAt time.Time
	result  *drivers.ExitResult
}

func (t *task) status() *drivers.TaskStatus {
	t.lock.Lock()
	defer t.lock.Unlock()
	state := drivers.TaskStateRunning
	if t.result != nil {
		state = drivers.TaskStateExited
	}
	return &drivers.TaskStatus{
		ID: t.config.ID, Name: t.config.Name, State: state, StartedAt: t.startedAt, CompletedAt: t.endedAt,
		ExitResult: t.result, DriverAttributes: map[string]string{"pid": fmt.Sprint(os.Getpid())},
	}
}

// echo is the driver.
type echo struct {
	*eventer.Eventer
	ctx    context.Context
	logger hclog.Logger

	lock   sync.Mutex
	config pluginConfig
	tasks  map[string]*task
}

func newEcho(ctx context.Context, logger hclog.Logger) interface{} {
	logger = logger.Named(name)
	return &echo{
		Eventer: eventer.NewEventer(ctx, logger), ctx: ctx, logger: logger,
		config: pluginConfig{Enabled: true}, tasks: map[string]*task{},
	}
}

func (e *echo) PluginInfo() (*base.PluginInfoResponse, error) {
	return &base.PluginInfoResponse{
		Type: base.PluginTypeDriver, PluginApiVersions: []string{drivers.ApiVersion010}, PluginVersion: version, Name: name,
	}, nil
}

func (e *echo) ConfigSchema() (*hclspec.Spec, error) {
	return hclspec.NewObject(map[string]*hclspec.Spec{
		"enabled": hclspec.NewDefault(hclspec.NewAttr("enabled", "bool", false), hclspec.NewLiteral("true")),
		"greeter": hclspec.NewDefault(hclspec.NewAttr("greeter", "string", false), hclspec.NewLiteral(`"unknown"`)),
	}), nil
}

func (e *echo) SetConfig(config *base.Config) error {
	read := pluginConfig{Enabled: true}
	if len(config.PluginConfig) > 0 {
		if err := base.MsgPackDecode(config.PluginConfig, &read); err != nil {
			return err
		}
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	e.config = read
	e.logger.Info("configured", "greeter", read.Greeter, "api_version", config.ApiVersion)
	return nil
}

func (e *echo) TaskConfigSchema() (*hclspec.Spec, error) {
	return hclspec.NewObject(map[string]*hclspec.Spec{
		"text":      hclspec.NewAttr("text", "string", true),
		"sleep":     hclspec.NewDefault(hclspec.NewAttr("sleep", "string", false), hclspec.NewLiteral(`"0s"`)),
		"exit_code": hclspec.NewDefault(hclspec.NewAttr("exit_code", "number", false), hclspec.NewLiteral("0")),
	}), nil
}

func (e *echo) Capabilities() (*drivers.Capabilities, error) {
	return &drivers.Capabilities{SendSignals: true, Exec: true, FSIsolation: drivers.FSIsolationNone}, nil
}

func (e *echo) Fingerprint(ctx context.Context) (<-chan *drivers.Fingerprint, error) {
	reports := make(chan *drivers.Fingerprint)
	go func() {
		defer close(reports)
		for {
			select {
			case <-ctx.Done():
				return
			case <-e.ctx.Done():
				return
			case reports <- e.fingerprint():
			}
			select {
			case <-ctx.Done():
				return
			case <-e.ctx.Done():
				return
			case <-time.After(fingerprintEvery):
			}
		}
	}()
	return reports, nil
}

func (e *echo) fingerprint() *drivers.Fingerprint {
	e.lock.Lock()
	defer e.lock.Unlock()
	if !e.config.Enabled {
		return &drivers.Fingerprint{Health: drivers.HealthStateUndetected, HealthDescription: "disabled"}
	}
	return &drivers.Fingerprint{
		Attributes: map[string]*pstructs.Attribute{
			"driver.echo":         pstructs.NewBoolAttribute(true),
			"driver.echo.version": pstructs.NewStringAttribute(version),
			"driver.echo.greeter": pstructs.NewStringAttribute(e.config.Greeter),
			"driver.echo.room":    pstructs.NewIntAttribute(64, pstructs.UnitMiB),
		},
		Health: drivers.HealthStateHealthy, HealthDescription: drivers.DriverHealthy,
	}
}

func (e *echo) StartTask(config *drivers.TaskConfig) (*drivers.TaskHandle, *drivers.DriverNetwork, error) {
	var read taskConfig
	if err := config.DecodeDriverConfig(&read); err != nil {
		return nil, nil, fmt.Errorf("cannot read the task's configuration: %w", err)
	}
	pause, err := time.ParseDuration(read.Sleep)
	if err != nil {
		return nil, nil, fmt.Errorf("sleep of the task: %w", err)
	}
	output, err := os.OpenFile(config.StdoutPath, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("standard output of the task: %w", err)
	}
	started := &task{
		config: config.Copy(), startedAt: time.Now(), signals: make(chan string, 16), done: make(chan struct{}),
	}
	if err := e.keep(started); err != nil {
		output.Close()
		return nil, nil, err
	}
	handle := drivers.NewTaskHandle(handleVersion)
	handle.Config = started.config
	handle.State = drivers.TaskStateRunning
	if err := handle.SetDriverState(map[string]string{"started_at": started.startedAt.Format(time.RFC3339Nano)}); err != nil {
		return nil, nil, err
	}
	go e.run(started, read, pause, output)
	return handle, nil, nil
}

func (e *echo) keep(started *task) error {
	e.lock.Lock()
	defer e.lock.Unlock()
	if _, exists := e.tasks[started.config.ID]; exists {
		return fmt.Errorf("task %q is started already", started.config.ID)
	}
	e.tasks[started.config.ID] = started
	return nil
}

func (e *echo) run(started *task, config taskConfig, pause time.Duration, output *os.File) {
	defer output.Close()
	e.announce(started, "started")
	result := &drivers.ExitResult{ExitCode: config.ExitCode}
	if _, err := fmt.Fprintln(output, config.Text); err != nil {
		result.Err = err
	}
	sleeping := time.After(pause)
	for isSleeping := true; isSleeping; {
		select {
		case <-sleeping:
			isSleeping = false
		case signal := <-started.signals:
			e.announce(started, "signalled "+signal)
			if signal == "SIGKILL" || signal == "SIGTERM" || signal == "SIGINT" {
				result = &drivers.ExitResult{Signal: map[string]int{"SIGKILL": 9, "SIGTERM": 15, "SIGINT": 2}[signal]}
				isSleeping = false
			}
		}
	}
	started.lock.Lock()
	started.result, started.endedAt = result, time.Now()
	started.lock.Unlock()
	close(started.done)
	e.announce(started, fmt.Sprintf("exited with code %d, signal %d", result.ExitCode, result.Signal))
}

func (e *echo) announce(of *task, message string) {
	err := e.EmitEvent(&drivers.TaskEvent{
		TaskID: of.config.ID, TaskName: of.config.Name, AllocID: of.config.AllocID, Timestamp: time.Now(),
		Message: message, Annotations: map[string]string{"driver": name},
	})
	if err != nil {
		e.logger.Warn("an event has no reader", "task_id", of.config.ID, "message", message, "error", err)
	}
}

func (e *echo) find(id string) (*task, error) {
	e.lock.Lock()
	defer e.lock.Unlock()
	if found, exists := e.tasks[id]; exists {
		return found, nil
	}
	return nil, drivers.ErrTaskNotFound
}

func (e *echo) RecoverTask(handle *drivers.TaskHandle) error {
	if handle == nil {
		return errors.New("no handle given")
	}
	if _, err := e.find(handle.Config.ID); err != nil {
		return fmt.Errorf("the tasks of this driver end with it: %w", err)
	}
	return nil
}

func (e *echo) WaitTask(ctx context.Context, id string) (<-chan *drivers.ExitResult, error) {
	found, err := e.find(id)
	if err != nil {
		return nil, err
	}
	results := make(chan *drivers.ExitResult)
	go func() {
		defer close(results)
		select {
		case <-ctx.Done():
			return
		case <-e.ctx.Done():
			return
		case <-found.done:
		}
		select {
		case <-ctx.Done():
		case <-e.ctx.Done():
		case results <- found.status().ExitResult:
		}
	}()
	return results, nil
}

func (e *echo) StopTask(id string, timeout time.Duration, signal string) error {
	if signal == "" {
		signal = "SIGTERM"
	}
	if err := e.SignalTask(id, signal); err != nil {
		return err
	}
	found, err := e.find(id)
	if err != nil {
		return err
	}
	select {
	case <-found.done:
		return nil
	case <-time.After(timeout):
		return e.SignalTask(id, "SIGKILL")
	}
}

func (e *echo) DestroyTask(id string, force bool) error {
	found, err := e.find(id)
	if err != nil {
		return err
	}
	if found.status().State == drivers.TaskStateRunning {
		if !force {
			return fmt.Errorf("task %q runs; stop it first, or use force", id)
		}
		if err := e.SignalTask(id, "SIGKILL"); err != nil {
			return err
		}
		<-found.done
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	delete(e.tasks, id)
	return nil
}

func (e *echo) InspectTask(id string) (*drivers.TaskStatus, error) {
	found, err := e.find(id)
	if err != nil {
		return nil, err
	}
	return found.status(), nil
}

func (e *echo) TaskStats(ctx context.Context, id string, interval time.Duration) (<-chan *drivers.TaskResourceUsage, error) {
	found, err := e.find(id)
	if err != nil {
		return nil, err
	}
	if interval <= 0 {
		interval = time.Second
	}
	usages := make(chan *drivers.TaskResourceUsage)
	go func() {
		defer close(usages)
		for {
			usage := &drivers.ResourceUsage{
				MemoryStats: &drivers.MemoryStats{RSS: 4096, Measured: []string{"RSS"}},
				CpuStats:    &drivers.CpuStats{Percent: 0.5, Measured: []string{"Percent"}},
			}
			report := &drivers.TaskResourceUsage{ResourceUsage: usage, Timestamp: time.Now().UTC().UnixNano()}
			select {
			case <-ctx.Done():
				return
			case <-found.done:
				return
			case usages <- report:
			}
			select {
			case <-ctx.Done():
				return
			case <-found.done:
				return
			case <-time.After(interval):
			}
		}
	}()
	return usages, nil
}

func (e *echo) SignalTask(id string, signal string) error {
	found, err := e.find(id)
	if err != nil {
		return err
	}
	select {
	case <-found.done:
		return nil
	case found.signals <- signal:
		return nil
	default:
		return fmt.Errorf("task %q has too many signals before it", id)
	}
}

func (e *echo) ExecTask(id string, command []string, _ time.Duration) (*drivers.ExecTaskResult, error) {
	if _, err := e.find(id); err != nil {
		return nil, err
	}
	return &drivers.ExecTaskResult{
		Stdout: []byte(fmt.Sprintln(command)), ExitResult: &drivers.ExitResult{ExitCode: len(command)},
	}, nil
}

func main() {
	plugins.ServeCtx(newEcho)
}
