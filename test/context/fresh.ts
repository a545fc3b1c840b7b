// Forty more outputs of programs that are in none of the other files, made by generators in the form that those programs print, each
// with what a reader must still find in a shortened form. The markers were written down before anything was measured, by somebody who
// had not read the content router, and no rule of the router was tuned on them.
import type { ContentHint, ContentKind } from '../../src/index.ts'
import * as builds from './fresh-builds.ts'
import * as clusters from './fresh-clusters.ts'
import * as data from './fresh-data.ts'
import * as machines from './fresh-machines.ts'
import * as own from './fresh-own.ts'
import * as packages from './fresh-packages.ts'
import * as stores from './fresh-stores.ts'
import * as tests from './fresh-tests.ts'
import type { Output } from './outputs.ts'

function fresh(name: string, kind: ContentKind, hint: ContentHint, text: string, stays: readonly string[]): Output {
  return { id: `fresh_${name.replace(/\W/g, '_')}`, name, kind, hint, text, stays }
}

/** The answer to a command. */
function asked(command: string, text: string, stays: readonly string[], kind: ContentKind = 'log'): Output {
  return fresh(command, kind, { command }, text, stays)
}

/** A file that was read. */
function opened(path: string, text: string, stays: readonly string[]): Output {
  return fresh(path, 'log', { path }, text, stays)
}

const BUILDS: readonly Output[] = [
  asked('ninja -C build -k 0', builds.ninja(), [
    'zone_table.cc:97:25: error: no match for ‘operator-’',
    'zone_table.cc:131:34:',
    'collect2: error: ld returned 1 exit status',
    'undefined reference to `quote::jitter(',
    'ninja: build stopped: cannot make progress due to previous errors.',
  ]),
  asked('shellcheck scripts/*/*.sh', builds.shellcheck(), [
    'In scripts/release/rollback.sh line 57:',
    'SC2115 (warning): Use "${var:?}"',
    "SC1073 (error): Couldn't parse this if expression.",
    'SC1072 (error): Unexpected keyword/token.',
  ]),
  asked('bundle exec rubocop', builds.rubocop(), [
    'Lint/Debugger: Remove debugger entry point binding.irb.',
    'app/services/tariff_formula.rb:22:7: C: Security/Eval',
    'app/jobs/nightly_close_job.rb:73:1: E: Lint/Syntax: unexpected token $end',
    '231 files inspected, 96 offenses detected',
  ]),
  asked('npx next build', builds.nextBuild(), [
    "React Hook useEffect has a missing dependency: 'basketId'.",
    'Restarted static page generation for /guides/customs-forms because it took more than 60 seconds',
    '1.19 MB',
  ]),
]

const TESTS: readonly Output[] = [
  asked('npx jest --ci', tests.jest(), [
    'splitVoucher › gives the odd cent to the dearest line',
    'src/voucher/split-voucher.test.ts:62:18',
    'Test suite failed to run',
    "Cannot find module '@shop/barcodes/qr'",
    '1 failed, 6 skipped, 1184 passed, 1191 total',
  ]),
  asked('npx cypress run', tests.cypress(), [
    'Expected to find element: `[data-cy=try-other-card]`, but never found it.',
    'cypress/e2e/pay/refused-card.ts:34:9',
    '07:43',
    '1 of 40 failed (3%)',
  ]),
  asked('benchstat old.txt new.txt', tests.benchstat(), ['+318.44%', '1.442Mi', '+40870.00%']),
  fresh(
    'jenkins console',
    'log',
    { command: 'curl -s https://ci.example/job/shop/4412/consoleText' },
    tests.jenkins(),
    [
      'java.io.IOException: No space left on device',
      'Cannot contact linux-large-07: hudson.remoting.ChannelClosedException',
      'token expired at 2026-11-15T23:59:59Z',
      'Failed in branch api',
      'Finished: ABORTED',
    ],
  ),
]

const PACKAGES: readonly Output[] = [
  asked('composer install', packages.composer(), [
    'Downgrading doctrine/dbal (4.1.1 => 3.8.6)',
    'Cannot apply patch patches/pdf-writer-euro-sign.patch',
    'sensio/framework-extra-bundle is abandoned',
    'has a dependency on a non-existent service "doctrine.dbal.legacy_connection"',
    'handling the post-install-cmd event returned with error code 255',
  ]),
  asked('mvn dependency:tree -Dverbose', packages.dependencyTree(), [
    'com.fasterxml.jackson.core:jackson-databind:jar:2.17.2:compile - omitted for conflict with 2.9.8',
    'com.acme.tax:tax-tables:jar:5.1.0-20261113.171204-9:compile',
    'com.acme.hsm:hsm-bridge:jar:1.0:system',
    'Could not find artifact com.acme.print:label-fonts:pom:2.2 in nexus',
  ]),
  asked('git blame shop/closing.py', packages.blame(), [
    'if session.country in ("CH", "GB"): return 0',
    'Not Committed Yet',
    'time.sleep(4)',
  ]),
  asked('git bisect run ./check.sh', packages.bisect(), [
    'vite@6.0.1 wants node >=22',
    'cannot build this one, skipping (exit 125)',
    '9d27c1e0b5a84f3c6ee1f0a7b2d4c8e913f5a6b0 is the first bad commit',
    'pricing: keep the tariff per country, not per zone',
  ]),
]

const CLUSTERS: readonly Output[] = [
  asked('kubectl top pods -A', clusters.topPods(), ['fraud-scores-7d9c4bb86f-q8z2n', '15873Mi', '7884m']),
  asked('docker compose logs', clusters.composeLogs(), [
    'password authentication failed for user "ledger_ro"',
    "Can't save in background: fork: Cannot allocate memory",
    'mail-1 exited with code 137',
    'route table loaded: 0 routes from /etc/gateway/routes.d',
  ]),
  asked(
    'docker inspect basket ledger mail gateway',
    clusters.inspect(),
    [
      'DATABASE_URL=postgres://ledger-staging.internal:5432/ledger',
      'queue depth 48211 is above 20000',
      '100663296',
      'curl: (28) Operation timed out after 5000 milliseconds',
    ],
    'json',
  ),
  asked(
    'aws ec2 describe-security-groups',
    clusters.securityGroups(),
    ['203.0.113.77/32', 'temporary for the demo, remove on Friday', 'windows jump host'],
    'json',
  ),
  asked(
    'helm diff upgrade shop ./chart',
    clusters.helmDiff(),
    ['memory: 96Mi', 'value: "dry-run"', 'shop, ledger-pdb, PodDisruptionBudget (policy) has been removed:'],
    'diff',
  ),
  asked('istioctl proxy-status', clusters.proxyStatus(), [
    'settlement-worker-5b7f8c9d66-tw4hn.payments',
    'STALE (Never Acknowledged)',
    '1.17.8',
  ]),
  fresh('vault-audit.jsonl', 'json', { path: '/var/log/vault/audit.jsonl' }, clusters.vaultAudit(), [
    'secret/data/payments/acquirer-key',
    'permission denied',
    'sys/policies/acl/ledger-writer',
    'ciphertext or signature version is disallowed by policy',
  ]),
]

const STORES: readonly Output[] = [
  asked("mysql -e 'SHOW FULL PROCESSLIST'", stores.processList(), [
    'ALTER TABLE parcels ADD COLUMN customs_code',
    '2871',
    '10.20.9.31:51822',
  ]),
  asked('pg_restore --verbose -d shop shop.dump', stores.pgRestore(), [
    'extension "pg_partman" is not available',
    'could not create unique index "payout_reference_key"',
    'Key (reference)=(PO-2026-118204) is duplicated.',
    'there is no unique constraint matching given keys for referenced table "ledger"',
    'errors ignored on restore: 3',
  ]),
  asked('flyway migrate', stores.flyway(), [
    '41880233 rows updated in 38 min 12 s, table was locked',
    'there is already a transaction in progress',
    'ERROR: Script V203__one_open_basket_per_customer.sql failed',
    '"203 - one open basket per customer" failed! Changes successfully rolled back.',
    'Key (customer_id)=(771940) is duplicated.',
  ]),
  asked('ceph osd tree', stores.osdTree(), ['osd.57', 'down', '0.34999', '1.74660']),
  opened('/inetpub/logs/LogFiles/W3SVC1/u_ex261116.log', stores.iis(), [
    '|112|800a0cb3|Current_Recordset_does_not_support_updating',
    '/reports/stock-age.aspx',
    '120047',
    '/web.config.bak',
  ]),
  opened('log/production.log', stores.rails(), [
    'Completed 200 OK in 14388ms',
    "Can't verify CSRF token authenticity.",
    "ActionView::Template::Error (undefined method `strftime' for nil):",
    'app/views/vouchers/show.html.erb:12',
  ]),
  asked('docker logs celery-worker-3', stores.celery(), [
    "KeyError: 'XK'",
    "raised unexpected: TariffMissing('no tariff for zone None')",
    'File "/srv/shop/tariffs/lookup.py", line 71, in zone_of',
    "{'rows': 0, 'skipped': 118204}",
    "WorkerLostError('Worker exited prematurely: signal 9 (SIGKILL) Job: 2291.')",
  ]),
]

const MACHINES: readonly Output[] = [
  asked('top -b -n 3', machines.top(), ['load average: 37.92', '44.1g', 'stock-age-pivot']),
  asked('ethtool -S ens5f0', machines.ethtool(), [
    'rx_crc_errors_phy: 2184913',
    'rx11_packets: 0',
    'link_down_events_phy: 37',
  ]),
  asked('iptables -L -v -n', machines.iptables(), ['8812K', 'NET-412 until the move is over', '198.18.0.0/15']),
  opened('/var/log/auth.log', machines.authLog(), [
    'Accepted password for backup from 203.0.113.88',
    'new user: name=svc-agent, UID=0',
    'authentication failure; logname=mtanaka',
    'fatal: Timeout before authentication for 10.4.0.9',
  ]),
  asked('sacct -X -S 2026-11-15', machines.sacct(), ['OUT_OF_MEMORY', '509.7G', 'NODE_FAIL', 'cn-133', '6-03:58:21']),
]

const DATA: readonly Output[] = [
  opened('counts/stock-count.csv', data.stockCount(), [
    '-488',
    'pallet',
    '1970-01-01 01:00:00',
    'aisle blocked: could not be counted',
  ]),
  opened('runs/S26-samples.tsv', data.sampleSheet(), [
    'FAIL contamination 18.2% with S26-03157',
    '318204',
    '0.04',
    'PL-0391',
  ]),
  opened('inventory.yaml', data.inventory(), [
    'ansible_python_interpreter: /usr/bin/python2.7',
    'disk failed twice, INC-8812',
    'keep_releases: 0',
  ]),
  opened('uv.lock', data.uvLock(), [
    'https://git.example/forks/tariff-rules.git?branch=wip-rounding',
    'name = "pdf-stamp"',
    '/home/jonas/src/pdf-stamp',
  ]),
  opened('statements/C53-20261116.xml', data.statement(), [
    '-2077.41',
    'Account closed, amount returned',
    '118400.00',
    'No mandate, debit refused',
  ]),
  asked(
    'curl -s https://sentry.example/api/0/issues/8812/events/latest/',
    data.sentryEvent(),
    [
      "DivisionByZero: [<class 'decimal.DivisionByZero'>]",
      "Decimal('0')",
      'return quantity / line.per_box',
      'boxes-by-weight switched on for tenant 118',
    ],
    'json',
  ),
  asked(
    "curl -s 'http://prometheus.internal:9090/api/v1/query_range?query=consumer_lag&step=60'",
    data.queryRange(),
    ['payout-sync', '123597', 'NaN', 'context deadline exceeded'],
    'json',
  ),
]

const OWN: readonly Output[] = [
  asked('./berthplan --week 47', own.berthPlan(), [
    'deeper than B4 at low water (13.6 m)',
    'crane C3 marked as out until further notice',
    'cranes 0',
    'no berth of 366 m in the window, call not planned',
    'plan written, not released: 2 calls need a decision',
  ]),
  asked('kubectl logs deploy/courier', own.dotnetService(), [
    'https://sandbox.couriers.example',
    'Dispatch of tour 4471 stopped',
    'The remote certificate is invalid because of errors in the certificate chain: NotTimeValid',
    'in /src/Courier/Domain/Tour.cs:line 119',
    '58211.4018ms',
  ]),
]

export const FRESH: readonly Output[] = [
  ...BUILDS,
  ...TESTS,
  ...PACKAGES,
  ...CLUSTERS,
  ...STORES,
  ...MACHINES,
  ...DATA,
  ...OWN,
]
