package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/nomad/client/lib/cpustats"
	cstructs "github.com/hashicorp/nomad/client/structs"
	"github.com/hashicorp/nomad/drivers/shared/eventer"
	"github.com/hashicorp/nomad/helper/pluginutils/hclutils"
	"github.com/hashicorp/nomad/plugins/base"
	"github.com/hashicorp/nomad/plugins/drivers"
	"github.com/hashicorp/nomad/plugins/drivers/fsisolation"
	"github.com/hashicorp/nomad/plugins/shared/hclspec"
	pstructs "github.com/hashicorp/nomad/plugins/shared/structs"
)

// forgetful is a driver of our own that relies on all that the drivers of others were seen to rely on, and fails as they do: it
// divides by the cores and by the speed of each, takes both halves of the resources for granted, makes no directory and no
// log file, needs the three directories in the environment, and can recover nothing, since it looks for the task's
// configuration where it never is. Its tasks are sessions of their own, and outlive it.
type forgetful struct {
	*eventer.Eventer
	ctx    context.Context
	logger hclog.Logger

	lock    sync.Mutex
	compute cpustats.Compute
	tasks   map[string]*ownTask
}

type ownTaskConfig struct {
	Command string             `codec:"command"`
	Args    []string           `codec:"args"`
	Labels  hclutils.MapStrStr `codec:"labels"`
}

type ownTask struct {
	config    *drivers.TaskConfig
	command   *exec.Cmd
	startedAt time.Time
	done      chan struct{}
	endedAt   time.Time
	result    *drivers.ExitResult
}

var errNoTask = drivers.ErrTaskNotFound

func newForgetful(ctx context.Context, logger hclog.Logger) drivers.DriverPlugin {
	logger = logger.Named("forgetful")
	return &forgetful{Eventer: eventer.NewEventer(ctx, logger), ctx: ctx, logger: logger, tasks: map[string]*ownTask{}}
}

func (f *forgetful) PluginInfo() (*base.PluginInfoResponse, error) {
	return &base.PluginInfoResponse{
		Type: base.PluginTypeDriver, PluginApiVersions: []string{drivers.ApiVersion010}, PluginVersion: "0.1.0", Name: "forgetful",
	}, nil
}

func (f *forgetful) ConfigSchema() (*hclspec.Spec, error) {
	return hclspec.NewObject(map[string]*hclspec.Spec{}), nil
}

func (f *forgetful) SetConfig(config *base.Config) error {
	// A plugin that is only asked who it is gets no configuration of its host.
	if config.AgentConfig == nil || config.AgentConfig.Driver == nil {
		return nil
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	f.compute = config.AgentConfig.Driver.Topology.Compute()
	each := uint64(f.compute.TotalCompute) / uint64(f.compute.NumCores)
	f.logger.Info("configured", "cores", f.compute.NumCores, "mhz_each", each)
	return nil
}

func (f *forgetful) TaskConfigSchema() (*hclspec.Spec, error) {
	return hclspec.NewObject(map[string]*hclspec.Spec{
		"command": hclspec.NewAttr("command", "string", true),
		"args":    hclspec.NewAttr("args", "list(string)", false),
		"labels":  hclspec.NewAttr("labels", "list(map(string))", false),
	}), nil
}

func (f *forgetful) Capabilities() (*drivers.Capabilities, error) {
	return &drivers.Capabilities{
		SendSignals: true, FSIsolation: fsisolation.None, MountConfigs: drivers.MountConfigSupportNone,
	}, nil
}

func (f *forgetful) Fingerprint(ctx context.Context) (<-chan *drivers.Fingerprint, error) {
	reports := make(chan *drivers.Fingerprint, 1)
	reports <- &drivers.Fingerprint{
		Attributes: map[string]*pstructs.Attribute{
			"driver.forgetful":       pstructs.NewBoolAttribute(true),
			"driver.forgetful.cores": pstructs.NewIntAttribute(int64(f.compute.NumCores), ""),
		},
		Health: drivers.HealthStateHealthy, HealthDescription: drivers.DriverHealthy,
	}
	go func() {
		defer close(reports)
		select {
		case <-ctx.Done():
		case <-f.ctx.Done():
		}
	}()
	return reports, nil
}

func (f *forgetful) RecoverTask(*drivers.TaskHandle) error {
	return errors.New("failed to decode driver config: EOF")
}

func (f *forgetful) StartTask(config *drivers.TaskConfig) (*drivers.TaskHandle, *drivers.DriverNetwork, error) {
	var read ownTaskConfig
	if err := config.DecodeDriverConfig(&read); err != nil {
		return nil, nil, fmt.Errorf("failed to decode driver config: %w", err)
	}
	for _, name := range []string{"NOMAD_ALLOC_DIR", "NOMAD_TASK_DIR", "NOMAD_SECRETS_DIR"} {
		if info, err := os.Stat(config.Env[name]); err != nil || !info.IsDir() {
			return nil, nil, fmt.Errorf("%s is no directory: %q", name, config.Env[name])
		}
	}
	each := uint64(f.compute.TotalCompute) / uint64(f.compute.NumCores)
	percent := uint64(config.Resources.LinuxResources.CPUShares) * 100 / each
	f.logger.Info("starting", "percent_of_a_core", percent, "memory_mb", config.Resources.NomadResources.Memory.MemoryMB)
	log, err := os.OpenFile(filepath.Join(config.TaskDir().Dir, "forgetful.out"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("the driver's own file in the task's directory: %w", err)
	}
	defer log.Close()
	started := &ownTask{
		config: config.Copy(), command: exec.Command(read.Command, read.Args...), startedAt: time.Now(), done: make(chan struct{}),
	}
	if err := f.launch(started); err != nil {
		return nil, nil, err
	}
	handle := drivers.NewTaskHandle(1)
	handle.Config = started.config
	handle.State = drivers.TaskStateRunning
	if err := handle.SetDriverState(map[string]int{"pid": started.command.Process.Pid}); err != nil {
		return nil, nil, err
	}
	return handle, nil, nil
}

func (f *forgetful) launch(task *ownTask) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.tasks[task.config.ID] != nil {
		return fmt.Errorf("task with ID %q already started", task.config.ID)
	}
	stdout, err := os.OpenFile(task.config.StdoutPath, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("standard output of the task: %w", err)
	}
	defer stdout.Close()
	stderr, err := os.OpenFile(task.config.StderrPath, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("standard error of the task: %w", err)
	}
	defer stderr.Close()
	task.command.Env = task.config.EnvList()
	task.command.Dir = task.config.TaskDir().Dir
	task.command.Stdout, task.command.Stderr = stdout, stderr
	task.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := task.command.Start(); err != nil {
		return err
	}
	f.tasks[task.config.ID] = task
	go func() {
		_ = task.command.Wait()
		f.lock.Lock()
		defer f.lock.Unlock()
		status := task.command.ProcessState.Sys().(syscall.WaitStatus)
		task.result = &drivers.ExitResult{ExitCode: status.ExitStatus()}
		if status.Signaled() {
			task.result = &drivers.ExitResult{ExitCode: 128 + int(status.Signal()), Signal: int(status.Signal())}
		}
		task.endedAt = time.Now()
		close(task.done)
	}()
	return nil
}

func (f *forgetful) find(id string) (*ownTask, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if task := f.tasks[id]; task != nil {
		return task, nil
	}
	return nil, errNoTask
}

func (f *forgetful) WaitTask(ctx context.Context, id string) (<-chan *drivers.ExitResult, error) {
	task, err := f.find(id)
	if err != nil {
		return nil, err
	}
	results := make(chan *drivers.ExitResult, 1)
	go func() {
		defer close(results)
		select {
		case <-ctx.Done():
		case <-task.done:
			results <- task.result
		}
	}()
	return results, nil
}

func (f *forgetful) StopTask(id string, timeout time.Duration, _ string) error {
	task, err := f.find(id)
	if err != nil {
		return err
	}
	_ = task.command.Process.Signal(syscall.SIGINT)
	select {
	case <-task.done:
	case <-time.After(timeout):
		_ = syscall.Kill(-task.command.Process.Pid, syscall.SIGKILL)
		<-task.done
	}
	return nil
}

func (f *forgetful) DestroyTask(id string, force bool) error {
	task, err := f.find(id)
	if err != nil {
		return err
	}
	select {
	case <-task.done:
	default:
		if !force {
			return errors.New("cannot destroy running task")
		}
		_ = syscall.Kill(-task.command.Process.Pid, syscall.SIGKILL)
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	delete(f.tasks, id)
	return nil
}

func (f *forgetful) InspectTask(id string) (*drivers.TaskStatus, error) {
	task, err := f.find(id)
	if err != nil {
		return nil, err
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	state := drivers.TaskStateRunning
	if task.result != nil {
		state = drivers.TaskStateExited
	}
	return &drivers.TaskStatus{
		ID: id, Name: task.config.Name, State: state, StartedAt: task.startedAt, CompletedAt: task.endedAt, ExitResult: task.result,
	}, nil
}

func (f *forgetful) TaskStats(context.Context, string, time.Duration) (<-chan *cstructs.TaskResourceUsage, error) {
	return nil, errors.New("no statistics")
}

func (f *forgetful) TaskEvents(ctx context.Context) (<-chan *drivers.TaskEvent, error) {
	return f.Eventer.TaskEvents(ctx)
}

func (f *forgetful) SignalTask(id string, _ string) error {
	task, err := f.find(id)
	if err != nil {
		return err
	}
	return task.command.Process.Signal(syscall.SIGHUP)
}

func (f *forgetful) ExecTask(string, []string, time.Duration) (*drivers.ExecTaskResult, error) {
	return nil, errors.New("no commands")
}
