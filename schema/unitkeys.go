package schema

import "strings"

// unitKeys are the commonest keys of the sections that systemd reads, and those
// that are but a letter or two from one of them (systemd.directives(7)). They
// are there to find misspelled ones; all others are left to systemd.
var unitKeys = map[string][]string{
	"Unit": strings.Fields(`Description Documentation After Before Requires Requisite Wants BindsTo BindTo PartOf Upholds Conflicts
		OnFailure OnSuccess ConditionPathExists DefaultDependencies StartLimitBurst StartLimitIntervalSec`),
	"Install": strings.Fields(`WantedBy RequiredBy UpheldBy Alias Also DefaultInstance`),
	"Service": strings.Fields(`Type ExecStart ExecStartPre ExecStartPost ExecCondition ExecReload ExecReloadPost ExecStop ExecStopPost
		Restart RestartSec TimeoutSec TimeoutStartSec TimeoutStopSec RemainAfterExit User Group WorkingDirectory Environment
		EnvironmentFile KillMode KillSignal PIDFile BusName`),
	"Socket": strings.Fields(`ListenStream ListenDatagram ListenFIFO Accept Service SocketUser SocketGroup SocketMode`),
	"Timer": strings.Fields(`OnActiveSec OnBootSec OnStartupSec OnUnitActiveSec OnUnitInactiveSec OnCalendar AccuracySec
		RandomizedDelaySec Persistent Unit`),
	"Path": strings.Fields(`PathExists PathExistsGlob PathChanged PathModified DirectoryNotEmpty Unit MakeDirectory`),
}

// quadletKeys are those of all types of quadlet files together
// (podman-systemd.unit(5)): which of them has which differs by version.
var quadletKeys = strings.Fields(`AddCapability AddDevice AddHost AllTags Annotation AppArmor Arch AuthFile AutoUpdate BuildArg CertDir
	CgroupsMode ConfigMap ContainerName ContainersConfModule Copy Creds DecryptionKey Device DisableDNS DNS DNSOption DNSSearch
	Driver DropCapability Entrypoint Environment EnvironmentFile EnvironmentHost Exec ExitCodePropagation ExitPolicy
	ExposeHostPort File ForceRM Gateway GIDMap GlobalArgs Group GroupAdd HealthCmd HealthInterval HealthLogDestination
	HealthMaxLogCount HealthMaxLogSize HealthOnFailure HealthRetries HealthStartPeriod HealthStartupCmd HealthStartupInterval
	HealthStartupRetries HealthStartupSuccess HealthStartupTimeout HealthTimeout HostName HttpProxy IgnoreFile Image ImageTag
	InterfaceName Internal IP IP6 IPAMDriver IPRange IPv6 KubeDownForce Label LogDriver LogOpt Mask Memory Mount Network
	NetworkAlias NetworkDeleteOnStop NetworkName NoNewPrivileges Notify Options OS PidsLimit Pod PodmanArgs PodName Policy
	PublishPort Pull ReadOnly ReadOnlyTmpfs ReloadCmd ReloadSignal RemapGid RemapUid RemapUidSize RemapUsers Retry RetryDelay
	Rootfs RunInit SeccompProfile Secret SecurityLabelDisable SecurityLabelFileType SecurityLabelLevel SecurityLabelNested
	SecurityLabelType ServiceName SetWorkingDirectory ShmSize StartWithPod StopSignal StopTimeout SubGIDMap Subnet SubUIDMap
	Sysctl Target Timezone TLSVerify Tmpfs Type UIDMap Ulimit Unmask User UserNS Variant VolatileTmp Volume VolumeName
	WorkingDir Yaml`)

// knownKeys are those that a key of a section is compared with; nil = none are
// known.
func knownKeys(form textForm, section string) []string {
	if section == form.own && !form.isUnit() {
		return quadletKeys
	}
	return unitKeys[section]
}
