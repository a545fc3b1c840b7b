// Thirty-six outputs of programs that are in none of the other files, made by generators in the form that those programs print, each
// with the lines that a reader must still find in a shortened form. Those were written down before anything was measured, and no rule
// of the content router was tuned on them.
import type { ContentHint, ContentKind } from '../../src/index.ts'
import * as builds from './blind-builds.ts'
import * as data from './blind-data.ts'
import * as machines from './blind-machines.ts'
import * as runs from './blind-runs.ts'
import * as services from './blind-daemons.ts'
import type { Output } from './outputs.ts'

function blind(name: string, kind: ContentKind, hint: ContentHint, text: string, stays: readonly string[]): Output {
  return { id: `blind_${name.replace(/\W/g, '_')}`, name, kind, hint, text, stays }
}

/** The answer to a command. */
function asked(command: string, text: string, stays: readonly string[]): Output {
  return blind(command, 'log', { command }, text, stays)
}

const BUILDS: readonly Output[] = [
  asked('bazel test //...', builds.bazel(), [
    'ledger/closing/month_end_test.cc:88: Failure',
    '[  FAILED  ] MonthEnd.LeapDay',
    'Which is: 28',
    '//edge/gateway:tls_rotation_test',
    'Executed 142 out of 212 tests: 210 tests pass and 2 fail locally.',
  ]),
  asked('mix test --trace', builds.mixTest(), [
    '1) test settle/2 waits for the ledger (Shop.SettlementTest)',
    'exited in: GenServer.call(Shop.Ledger',
    'lib/shop/settlement.ex:41',
    '266 tests, 1 failure, 4 skipped',
  ]),
  asked('xcodebuild -scheme Courier build', builds.xcodebuild(), [
    "DoorCode.swift:118:31: error: value of optional type 'Depot?'",
    'let gate = stop.depot.gate',
    '** BUILD FAILED **',
  ]),
  asked('npx playwright test', builds.playwright(), [
    '[webkit] › checkout.spec.ts:44:5 › guest › pays with a saved card',
    'locator resolved to <button disabled type="submit">Pay now</button>',
    'checkout.spec.ts:53:57',
    '[firefox] › search.spec.ts:71:5 › member › sees suggestions',
    '218 passed (4.6m)',
  ]),
  asked('golangci-lint run ./...', builds.golangciLint(), [
    'internal/transfer/batch.go:211:3: lostcancel',
    'internal/login/token.go:57:12: G401',
    '95 issues:',
  ]),
  asked('cabal build all', builds.cabal(), [
    'src/Shop/Tariff/Zone.hs:64:27: error: [GHC-83865]',
    'with actual type ‘[(ZoneId, Cents)]’',
    'lookupZone zone (toPairs table)',
    'Failed to build shop-0.4.',
  ]),
  asked('yarn install --immutable', builds.yarn(), [
    "money-format@npm:3.1.4: The remote archive doesn't match the expected checksum",
    "doesn't provide react-dom",
    'Failed with errors in 33s 870ms',
  ]),
  asked('pdflatex handbook.tex', runs.latex(), [
    '! Undefined control sequence.',
    'l.412 The tariff of \\zonename',
    "Reference `tab:surcharge' on page 88 undefined",
    'Output written on handbook.pdf (164 pages',
  ]),
  asked('ctest --output-on-failure', runs.ctest(), [
    'grid.interpolate_edges',
    'max deviation 3.118e-02 at cell (63, 17)',
    'solver.restart_from_checkpoint (SEGFAULT)',
    '2 tests failed out of 180',
  ]),
  asked('sbt test', runs.sbt(), [
    'should convert crowns at the rate of the booking day *** FAILED ***',
    'was not equal to BigDecimal("148.02") (ExchangeSpec.scala:93)',
    'succeeded 209, failed 1',
  ]),
  asked('robot warehouse/', runs.robot(), [
    'Scale Reports Weight After Power Cut',
    'reading is None for scale S-17',
    '144 tests, 143 passed, 1 failed',
  ]),
  asked('gh run view 8812 --log', runs.workflowLog(), [
    'deployment "basket" exceeded its progress deadline',
    'Process completed with exit code 1.',
    '##[warning]Image tag "basket:1.18" already exists',
  ]),
]

const SERVICES: readonly Output[] = [
  asked('k6 run browse.js', services.k6(), [
    'dial tcp 10.4.0.9:443: connect: connection refused',
    '✗ basket is 201',
    'p(95)=1.84s',
    "thresholds on metrics 'http_req_duration' have been crossed",
  ]),
  asked('trivy image basket:1.18', services.trivy(), [
    'CVE-2023-4863',
    '1.2.4-0.2+deb12u1',
    'Total: 84 (UNKNOWN: 0, LOW: 62, MEDIUM: 21, HIGH: 0, CRITICAL: 1)',
  ]),
  asked('pulumi up --yes', services.pulumi(), [
    'ledger-db',
    'Unzipped size must be smaller than 262144000 bytes',
    'aws:lambda:Function (stamp-duty):',
    '+-1 replaced',
  ]),
  asked('aws cloudformation describe-stack-events --stack-name shop-prod --output table', services.stackEvents(), [
    'DB Instance class db.t2.micro does not support encryption at rest',
    'LedgerReplica',
    'ROLLBACK_COMPLETE',
    'ResourceStatusReason',
  ]),
  asked('redis-cli slowlog get 128', services.slowlog(), ['5218404', 'session:*:basket', 'report-cron']),
  blind('mongod.log', 'log', { path: '/var/log/mongodb/mongod.log' }, services.mongod(), [
    "Can't see a majority of the set, relinquishing primary",
    'No space left on device',
    'collection-7-114.wt',
  ]),
  asked('curl -s es.example:9200/_cat/shards?v', services.catShards(), [
    'UNASSIGNED',
    'ALLOCATION_FAILED',
    'REPLICA_ADDED',
    'prirep',
  ]),
  blind('rabbit.log', 'log', { path: '/var/log/rabbitmq/rabbit@mq-2.log' }, services.rabbit(), [
    '{handshake_timeout,frame_header}',
    "memory resource limit alarm set on node 'rabbit@mq-2'",
    'Publishers will be blocked until this alarm clears',
    'vm_memory_high_watermark set. Memory used:6871002112',
  ]),
]

const MACHINES: readonly Output[] = [
  blind('mail.log', 'log', { path: '/var/log/mail.log' }, machines.postfix(), [
    'to=<billing@larch.example>',
    'status=bounced',
    'due to domain DMARC policy',
    'status=deferred (connect to mx.cedar.example',
  ]),
  asked('argocd app get shop', machines.argocd(), [
    'reason: BackoffLimitExceeded',
    'migrate-ledger-0418',
    'tariff-engine',
    'Degraded',
  ]),
  asked('tcpdump -nn -i eth0', machines.tcpdump(), [
    'ICMP 203.0.113.9 unreachable - need to frag (mtu 1380)',
    'Flags [R.]',
    '31 packets dropped by kernel',
  ]),
  asked('iostat -x 5 36', machines.iostat(), ['4811.20', '9120.21', '%util', 'store-3']),
  asked('nodetool tablestats shop', machines.tablestats(), [
    'Table: scan_events',
    'Compacted partition maximum bytes: 4139110981',
    'Average tombstones per slice (last five minutes): 88412.7',
    'Local read latency: 1840.512 ms',
  ]),
  asked('clickhouse-client -q "SELECT * FROM parts_of_shop" -f PrettyCompact', machines.clickhouse(), [
    'broken-on-start_202610_88_88_0',
    'checksum mismatch',
    '402.11 GiB',
    '150 rows in set.',
  ]),
  asked('show interfaces', machines.switchPorts(), [
    'GigabitEthernet1/0/29 is down, line protocol is down (err-disabled)',
    'uplink hall 4 camera ring',
    '418802 input errors, 418640 CRC',
    'GigabitEthernet1/0/11 is up',
  ]),
  asked('adb logcat -d', machines.logcat(), [
    'FATAL EXCEPTION: main',
    'Caused by: java.lang.IllegalStateException: camera 0 is held by pid 9120',
    'CameraGate.open(CameraGate.kt:48)',
    'Process: example.courier',
  ]),
]

const DATA: readonly Output[] = [
  blind('junit.xml', 'log', { path: 'reports/junit.xml' }, data.junitXml(), [
    '<testsuites tests="198" failures="1" errors="1"',
    'calendar.ics: unexpected end of file',
    'name="splits_a_refund_over_two_cards"',
    'but was:&lt;[20.00]&gt;',
    'SplitTest.java:77',
  ]),
  blind('findings.sarif', 'json', { path: 'findings.sarif' }, data.sarif(), [
    'js/sql-injection',
    'depends on a user-provided value (req.query.depot)',
    'src/stock/by-depot.ts',
    '166',
  ]),
  blind('telegraf.toml', 'log', { path: 'telegraf.toml' }, data.telegraf(), [
    'insecure_skip_verify = true',
    'name_override = "ledger_gate"',
    'interval = "12h"',
    '[[outputs.influxdb_v2]]',
  ]),
  blind('openapi.yaml', 'log', { path: 'openapi.yaml' }, data.openapi(), [
    '/refunds/force:',
    'operationId: forceRefund',
    '- {}',
    'deprecated: true',
  ]),
  blind('charges.json', 'json', { command: 'curl -s https://pay.example/v1/charges' }, data.charges(), [
    'card_declined',
    'The card was reported stolen by its bank.',
    'dp_1QLm7T2eZvKYlo2C',
    'has_more',
  ]),
  blind('LEDGNITE.joblog', 'log', {}, data.hostJob(), [
    'STEP0410 - ABEND=S0C7',
    'SYSTEM COMPLETION CODE=0C7',
    'POSTFILE,0A41,PRD114,PRD.LEDGER.POSTINGS',
    'COND CODE 0004',
    '$HASP395 LEDGNITE ENDED - ABEND=S0C7',
  ]),
  blind('frostline', 'log', { command: './frostline --day 2026-11-16' }, data.coldRooms(), [
    'door open since 00:41, nobody badged in',
    'compressor 2 draws 0.0 A',
    'stock moved to room 11 by hand, 214 crates',
    '1 outside of its band (room 05',
  ]),
  blind('spans.tsv', 'log', { path: 'spans.tsv' }, data.spansTsv(), ['48211.6', 'POST /intake', 'duration_ms']),
]

export const BLIND: readonly Output[] = [...BUILDS, ...SERVICES, ...MACHINES, ...DATA]
