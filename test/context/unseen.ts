// Forty outputs of programs that are in none of the other files, made by generators in the form that those programs print, each with
// the lines that a reader must still find in a shortened form. Those were written down before anything was measured, by someone who had
// not read the content router, and no rule of it was tuned on them.
import type { ContentHint, ContentKind } from '../../src/index.ts'
import type { Output } from './outputs.ts'
import * as builds from './unseen-builds.ts'
import * as clusters from './unseen-clusters.ts'
import * as crashes from './unseen-crashes.ts'
import * as data from './unseen-data.ts'
import * as machines from './unseen-machines.ts'
import * as runs from './unseen-runs.ts'
import * as services from './unseen-daemons.ts'

function unseen(name: string, kind: ContentKind, hint: ContentHint, text: string, stays: readonly string[]): Output {
  return { id: `unseen_${name.replace(/\W/g, '_')}`, name, kind, hint, text, stays }
}

/** The answer to a command. */
function asked(command: string, text: string, stays: readonly string[]): Output {
  return unseen(command, 'log', { command }, text, stays)
}

/** A file that was read. */
function file(path: string, text: string, stays: readonly string[]): Output {
  return unseen(path, 'log', { path }, text, stays)
}

const BUILDS: readonly Output[] = [
  asked('ninja -k 0 -C out/release', builds.ninja(), [
    "track_writer.cc:217:27: error: no viable conversion from 'std::optional<Timestamp>'",
    'writer->SetStart(track, track.first_pts());',
    'undefined symbol: net::KeyLog::Open(base::FilePath const&)',
    'referenced by session.cc:402',
    'ninja: build stopped: cannot make progress due to previous errors.',
  ]),
  asked('nix build .#atlas --print-build-logs --keep-going', builds.nixBuild(), [
    'hash mismatch in fixed-output derivation',
    'specified: sha256-Jr9x0fU2vVh3cN0h8P1m7bqYy5m0T3oJk2aWcE4d9Xk=',
    'got:    sha256-8wq2LZt4s0UoYb7uPpC3oG1dKf9nXhQ6eVtRrA5mSjE=',
    "from 'http://10.4.0.17:5000'",
  ]),
  asked('dnf upgrade -y', builds.dnf(), [
    'pgdg18-testing',
    'sshd_config.rpmnew',
    'No space left on device',
    '%posttrans(kernel-core-6.11.10-300.fc41.x86_64) scriptlet failed',
  ]),
  asked('shellcheck scripts/*/*.sh', builds.shellcheck(), [
    'rm -rf $STAGE/*',
    'SC2115 (warning)',
    'In scripts/backup/rotate.sh line 212:',
    'SC1073 (error)',
  ]),
  asked('pylint depot', builds.pylint(), [
    "E1136: Value 'self.rates' is unsubscriptable",
    "E0602: Undefined variable 'gate_of'",
    'W0102: Dangerous default value []',
    'rated at 7.83/10 (previous run: 9.41/10, -1.58)',
  ]),
  file('poetry.lock', builds.poetryLock(), [
    'python-versions = ">=3.8,<3.11"',
    'https://git.example/forks/pysoap-client.git',
    'reference = "keep-sha1"',
  ]),
]

const RUNS: readonly Output[] = [
  asked('npx cypress run', runs.cypress(), [
    "but the text was '€ 41.09'",
    'checkout.cy.ts:57:31',
    '(Attempt 1 of 3) shows the depot on the map',
    '06:41',
    '1 of 16 failed (6%)',
  ]),
  asked('glab ci trace docs-pages', runs.gitlabJob(), [
    'legacy.soap: 41208 pages written in 318.4 s',
    "undefined label: 'night-surcharge'",
    '413 Request Entity Too Large',
    'FATAL: too large',
    'Job failed: exit code 1',
  ]),
  asked('dbt run --target prod', runs.dbtRun(), [
    'SELECT 0 in 1.12s',
    'SELECT 88124 in 2871.40s',
    'ERROR creating sql incremental model marts.fct_margin',
    'A field with precision 10, scale 4 must round',
    'Done. PASS=74',
  ]),
  asked('lockgate report --week 46', runs.lockgate(), [
    'B:ajar',
    'fill 47m12',
    'motor B2 current 31.4 A',
    'sluice 1 refused to close',
    'next inspection L6: overdue 3 d',
  ]),
  asked('pressctl tail --shift night', runs.pressroom(), [
    '90g recycled (asked: 135g gloss)',
    'register +0.41 mm',
    'HOLD by Iversen',
    'splicer fault E-217',
  ]),
]

const CLUSTERS: readonly Output[] = [
  asked('gcloud compute instances list', clusters.gcloudInstances(), [
    '34.89.201.17',
    'us-central1-f',
    "zone 'europe-west3-d' did not answer",
    'TERMINATED',
  ]),
  asked('az network nsg rule list --nsg-name shop-prod-nsg -o table', clusters.azureRules(), [
    'tmp-vendor-rdp',
    'block-replica',
    'egress-mail-old',
  ]),
  asked('ceph health detail && ceph osd df tree', clusters.ceph(), [
    'pg 4.1a7 is active+clean+inconsistent, acting [12,5,44]',
    'osd.37 (root=default,host=stor-07) is down',
    'backfill_toofull',
    '91.47',
  ]),
  asked('sacct -S 2026-11-13 -A geo-eu', clusters.sacct(), ['TIMEOUT', '257998412K', ' 412K', 'NODE_FAIL']),
]

const SERVICES: readonly Output[] = [
  asked('pt-query-digest db-1-slow.log', services.queryDigest(), [
    '41.72 SELECT customers',
    'Invalid --since value: 2026-11-31',
    '48.21G',
    'LOWER(TRIM(c.email))',
  ]),
  asked('mongosh shop --eval explain.js', services.mongoExplain(), [
    "stage: 'COLLSCAN'",
    'totalDocsExamined: 18220417',
    'operation exceeded time limit',
  ]),
  file('/var/opt/mssql/log/errorlog', services.sqlServerLog(), [
    "'max server memory (MB)' changed from 57344 to 2048",
    'I/O requests taking longer than 15 seconds',
    'Error: 9002, Severity: 17',
    "full due to 'REPLICATION'",
  ]),
  file('/var/log/apache2/access.log', services.apacheAccess(), [
    'GET /admin/export?table=customers&from=1970-01-01',
    'python-requests/2.9.1',
    '"PUT /stock/HAM-2/batch HTTP/1.1" 507',
  ]),
  asked('varnishlog -g request -d', services.varnishlog(), [
    'FetchError     http first read error: EOF',
    'RespStatus     503',
    '18.402177 18.402177',
  ]),
]

const MACHINES: readonly Output[] = [
  asked('lsof -nP', machines.lsof(), ['trace.log (deleted)', '203.0.113.77:4444', 'CLOSE_WAIT']),
  asked('perf report --stdio', machines.perfReport(), [
    'Failed to open /tmp/perf-4118.map',
    'shop::Price::format',
    'TariffTable::Reload',
  ]),
  asked('smartctl -x /dev/sdc', machines.smartctl(), [
    'current: 1.5 Gb/s',
    '197 Current_Pending_Sector',
    'Error: UNC 8 sectors',
    'Completed: read failure       60%     40123         812748004',
  ]),
  asked('ipmitool sel elist', machines.ipmiEvents(), [
    'General Chassis intrusion',
    'DIMMB4',
    'Power Supply #0x62',
    'Timestamp Clock Sync',
  ]),
  asked('nmap -sV --script ssl-cert,vuln 10.20.4.0/24', machines.nmap(), [
    '23/tcp   open     telnet',
    '2024-02-29T23:59:59',
    '6379/tcp open     redis',
    'Remote Code Execution vulnerability',
  ]),
  asked('iptables -L -v -n --line-numbers', machines.iptables(), ['TODO remove, hv', '7120M', 'icmp-port-unreachable']),
]

const CRASHES: readonly Output[] = [
  asked('./ledgerd --close-day', crashes.goPanic(), [
    'rates are old',
    'panic: runtime error: invalid memory address or nil pointer dereference',
    'closing.(*Day).carry',
    '/src/internal/closing/day.go:188',
    'semacquire, 412 minutes',
  ]),
  asked('bin/shop start', crashes.phoenix(), [
    'GenServer Shop.Tariff.Cache terminating',
    '** (KeyError) key :vat not found',
    'lib/shop/tariff/cache.ex:88',
    'loaded: 0, source: "s3://tariffs/2026-11-14.csv"',
    'Sent 200 in 18412ms',
  ]),
  file('storage/logs/laravel.log', crashes.laravel(), [
    'MAIL_MAILER was taken from .env.example',
    'SQLSTATE[40001]: Serialization failure',
    'app/Actions/ReserveStock.php(64)',
    '"ms":61204',
  ]),
  file('log/production.log', crashes.rails(), [
    '1902 queries',
    'Completed 500 Internal Server Error',
    "undefined method 'cents' for nil",
    'app/models/concerns/surcharge.rb:27',
  ]),
  asked('dotnet Orders.Api.dll', crashes.aspNet(), [
    "Section 'Payments:Retry' is not in appsettings.Production.json",
    'DbUpdateException: An error occurred while saving the entity changes',
    'Npgsql.PostgresException (0x80004005): 23514',
    '/src/Orders.Domain/VoucherBook.cs:line 118',
    '30004.1182ms',
  ]),
  asked('RUST_BACKTRACE=full ./target/release/harvester', crashes.rustPanic(), [
    'retry budget used up',
    'lag_ms=912044',
    'panicked at crates/feed/src/window.rs:141:18',
    '/build/crates/feed/src/merge.rs:88:30',
    'ERROR harvester::main: task ended',
  ]),
  asked('swift test', crashes.swiftTest(), [
    'passed (41.822 seconds)',
    'Fatal error: Index out of range',
    'RoutePlanner.swift:212:29',
    'let next = legs[legs.startIndex + 1]',
    'error: Exited with unexpected signal code 4',
  ]),
]

const DATA: readonly Output[] = [
  file('meters.csv', data.metersCsv(), ['MWh', 'estimated', ';-8112;']),
  file('trio.vcf', data.variantsVcf(), ['CLNSIG=Pathogenic', 'strand_bias;low_depth', '1/1:40:99']),
  file('deploy/values-prod.yaml', data.valuesYaml(), [
    'TIMEOUT_MS: "300000"',
    'replicas: 0',
    'ghcr.io/hvogel/shop-debug',
    'sslmode=disable',
  ]),
  file('statement.camt053.xml', data.camtXml(), ['AC04 account closed, R-29844', 'PDNG', '-1120.07']),
  unseen('page.har', 'json', { path: 'page.har' }, data.pageHar(), [
    '18377',
    'net::ERR_HTTP2_PROTOCOL_ERROR',
    '198.51.100.9',
  ]),
  unseen(
    'search of issues',
    'json',
    { command: "curl -s 'https://jira.example/rest/api/2/search?jql=project=SHOP'" },
    data.jiraSearch(),
    ['2019-03-31', 'Night surcharge is charged twice after a retry', 'Waiting for legal'],
  ),
  unseen('audit.jsonl', 'json', { path: 'audit.jsonl' }, data.auditJsonl(), [
    'windows/amd64',
    'system:anonymous',
    'deletecollection',
    'cannot patch resource',
  ]),
]

export const UNSEEN: readonly Output[] = [
  ...BUILDS,
  ...RUNS,
  ...CLUSTERS,
  ...SERVICES,
  ...MACHINES,
  ...CRASHES,
  ...DATA,
]
