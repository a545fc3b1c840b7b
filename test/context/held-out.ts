// Forty outputs that no rule of the content router was tuned on, of programs that are not in outputs.ts nor in machine-outputs.ts, each
// with the lines that a reader must still find in a shortened form. Those were written down before anything was measured.
import { readFileSync } from 'node:fs'
import type { ContentHint, ContentKind } from '../../src/index.ts'
import * as builds from './held-out-builds.ts'
import * as data from './held-out-data.ts'
import * as services from './held-out-daemons.ts'
import type { Output } from './outputs.ts'

function held(name: string, kind: ContentKind, hint: ContentHint, text: string, stays: readonly string[]): Output {
  return { id: `held_${name.replace(/\W/g, '_')}`, name, kind, hint, text, stays }
}

/** What a real program printed, and what was asked of it. */
function printed(file: string, command: string, stays: readonly string[]): Output {
  return held(file, 'log', { command }, readFileSync(`test/context/outputs/${file}`, 'utf8'), stays)
}

/** What a generator made, as the answer to a command. */
function made(command: string, text: string, stays: readonly string[]): Output {
  return held(command, 'log', { command }, text, stays)
}

const REAL: readonly Output[] = [
  printed('valgrind.txt', 'valgrind --leak-check=full ./orders', [
    'Conditional jump or move depends on uninitialised value(s)',
    'price_of (orders.c:36)',
    'Invalid read of size 4',
    'drop (orders.c:37)',
    'definitely lost: 6,048 bytes in 27 blocks',
  ]),
  printed('gdb-threads.txt', "gdb -batch -ex run -ex 'thread apply all bt' ./indexer", [
    'received signal SIGSEGV, Segmentation fault',
    'return (int)strlen(node->next->name);',
    'merge_segments (root=0x7fffebdb7eb0) at indexer.c:12',
    'in main () at indexer.c:24',
  ]),
  printed('git-rebase.txt', 'git rebase -v main', [
    'CONFLICT (content): Merge conflict in settings.ini',
    'could not apply 44cd17d... part 43 is read from its own file',
    '191 files changed',
    'settings.ini                |  2 +-',
  ]),
  printed('openssl-s-client.txt', 'openssl s_client -connect api.shop.example:443 -showcerts', [
    'certificate has expired',
    'notAfter=Nov  1 00:00:00 2025 GMT',
    'depth=0 CN = api.shop.example',
    'Verify return code: 10',
  ]),
  printed('prove.txt', 'prove -v t', [
    "Failed test 'stock of A-113 never goes below zero'",
    'at t/07-stock.t line 15.',
    "$got->{left} = '-3'",
    'cannot open ledger db: Device or resource busy at t/10-stock.t line 24.',
    'Result: FAIL',
  ]),
  printed('java-gc.txt', 'java -Xmx48m -Xlog:gc* Cache', [
    'java.lang.OutOfMemoryError: Java heap space',
    'at Cache.render(Cache.java:4)',
    'Pause Full (Allocation Failure) 46M->46M(46M)',
    'tenured generation   total 32768K, used 32742K',
  ]),
  printed('doctest.txt', 'python3 -m doctest -v tariff.py', [
    'File "/app/tariff.py", line 286, in tariff.zone_28',
    'Got:',
    '    31',
    '179 passed and 1 failed.',
  ]),
  printed('gcov.txt', 'gcov -b -t codec.c', [
    '#####:  190:    fprintf(stderr, "negative length\\n");',
    '#####:  191:    abort();',
    'function decode_23 called 1 returned 100% blocks executed 75%',
  ]),
  printed('cprofile.txt', 'python3 -m cProfile -s name prof.py', [
    '217063 function calls (216009 primitive calls) in 0.336 seconds',
    'ncalls  tottime  percall  cumtime  percall filename:lineno(function)',
    '0.136    0.000    0.197    0.000 difflib.py:622(quick_ratio)',
    'difflib.py:666(get_close_matches)',
  ]),
  printed('compileall.txt', 'python3 -m compileall shop', [
    '***   File "shop/area_5/handler_9.py", line 2',
    'return sum(r.net for r in rows',
    "SyntaxError: '(' was never closed",
  ]),
  printed('git-fsck.txt', 'git fsck --full', [
    'missing blob 752a44f56e857da80367ed8b4adc8e96b5eea771',
    'dangling blob',
  ]),
  printed('psql-explain.txt', 'psql -f slow.sql', [
    'Seq Scan on events_2024_10 e_22',
    'Rows Removed by Filter: 304313',
    'Sort Method: external merge  Disk: 80kB',
    'Execution Time: 88.861 ms',
  ]),
]

const BUILDS: readonly Output[] = [
  made('go test -race -v ./...', builds.goRace(), [
    'WARNING: DATA RACE',
    '/app/ledger/book.go:118',
    '/app/ledger/book.go:87',
    'race detected during execution of test',
    'FAIL\texample.com/shop/ledger',
  ]),
  made('./gradlew build', builds.gradle(), [
    'RefundRulesTest.kt:64:31 Type mismatch: inferred type is String? but String was expected',
    ':compileTestKotlin FAILED',
    'BUILD FAILED in 2m 14s',
  ]),
  made('mvn -B test', builds.surefire(), [
    'expected: <7.00> but was: <19.00>',
    'VatRulesTest.reducedRateForBooks(VatRulesTest.java:88)',
    'Tests run: 771, Failures: 1, Errors: 0, Skipped: 9',
    'BUILD FAILURE',
  ]),
  made('npx webpack --mode production', builds.webpack(), [
    "Can't resolve '@shop/currency' in '/app/src/checkout'",
    'ERROR in ./src/checkout/summary.tsx 14:0-52',
    'vendor.4be1.js',
    'compiled with 1 error and 1 warning',
  ]),
  made('docker build --progress=plain .', builds.dockerBuild(), [
    'ImageBackend.cc:9:10: fatal error: pixman.h: No such file or directory',
    'RUN npm ci',
    'did not complete successfully: exit code: 1',
    'Dockerfile:14',
  ]),
  made('bundle exec rspec -fd', builds.rspec(), [
    'expected Voucher::Expired but nothing was raised',
    './spec/models/voucher_spec.rb:57',
    'got: 6',
    './spec/mailers/parcel_mailer_spec.rb:31',
    '384 examples, 2 failures',
  ]),
  made('vendor/bin/phpunit --testdox', builds.phpunit(), [
    '✘ Price is rounded to five cents',
    'Failed asserting that 12.349999999999998 matches expected 12.35.',
    '/app/tests/Unit/SwissRoundingTest.php:41',
    'Tests: 320, Assertions: 1188, Failures: 1.',
  ]),
  made('dotnet build -c Release', builds.dotnet(), [
    'ExportJob.cs(212,27): error CS1061',
    "does not contain a definition for 'Compression'",
    'known high severity vulnerability',
    '1 Error(s)',
  ]),
  made('run-clang-tidy -p build', builds.clangTidy(), [
    'src/stock/reserve.cpp:144:12: warning: Called C++ object pointer is null',
    "Assuming 'shelf' is null",
    'modernize-use-auto',
    'Suppressed 12793 warnings',
  ]),
  made('mypy shop', builds.mypy(), [
    'shop/payments/capture.py:203: error: Argument 2 to "capture"',
    'expected "Decimal"  [arg-type]',
    'Found 130 errors in 97 files',
  ]),
  made('coverage report -m', builds.coverageTable(), [
    'shop/payments/refund_rules.py',
    '14-88, 91-203, 210-266',
    'TOTAL',
    'total of 97 is less than fail-under=98',
  ]),
]

const SERVICES: readonly Output[] = [
  made('systemctl list-units', services.listUnits(), [
    'backup-ledger.service',
    'failed failed',
    '150 loaded units listed',
  ]),
  made('mysql -e "SHOW ENGINE INNODB STATUS\\G"', services.innodbStatus(), [
    'LATEST DETECTED DEADLOCK',
    'UPDATE stock SET left_over = left_over - 2 WHERE sku = 1042',
    "UPDATE orders SET state = 'packed' WHERE id = 77120",
    'WE ROLL BACK TRANSACTION (1)',
    'TRANSACTION 71002, ACTIVE 48211 sec',
  ]),
  held('nginx-error.log', 'log', { path: '/var/log/nginx/error.log' }, services.nginxErrors(), [
    'certificate verify failed',
    'upstream: "https://10.0.9.14:8443/pay"',
    'worker process 71 exited on signal 11',
  ]),
  held('haproxy.log', 'log', {}, services.haproxy(), [
    'Server be_pay/pay-3 is DOWN, reason: Layer4 timeout',
    'be_pay/<NOSRV>',
    'sQ--',
  ]),
  made('ssh -vvv deploy@build-7.example', services.sshVerbose(), [
    'Permission denied (publickey)',
    'Offering public key: /home/user/.ssh/id_ed25519',
    'Authentications that can continue: publickey',
    'Connection established.',
  ]),
  made('rsync -av photos backup:/srv', services.rsync(), [
    'write failed on "/srv/photos/2026/11/IMG_4471.dng": No space left on device (28)',
    'error in file IO (code 11)',
    'Read-only file system (30)',
    'total size is 91,220,117,504',
  ]),
  made('apt-get upgrade -y', services.apt(), [
    'newaliases: fatal: bad string length 0 < 1: mydomain =',
    'dpkg: error processing package postfix (--configure)',
    'returned error exit status 75',
    'Sub-process /usr/bin/dpkg returned an error code (1)',
  ]),
  made('pip install -r requirements.txt', services.pip(), [
    'The user requested protobuf==5.26.1',
    'dbt-shop 1.18.0 depends on protobuf<5 and >=4.0.0',
    'because these package versions have conflicting dependencies',
    'ResolutionImpossible',
  ]),
  held('kafka-server.log', 'log', { path: 'logs/server.log' }, services.kafka(), [
    'Shrinking ISR from 1,2,3 to 2.',
    'NotEnoughReplicasException',
    'min.isr requirement of 2 for partition payments-7',
  ]),
  made('airflow tasks logs load_orders copy_to_lake', services.airflow(), [
    'source has 1,522,904 rows, lake has 1,513,911',
    'line 88, in close_day',
    'chunk 90 has 0 rows, the source may be late',
    'Marking task as FAILED',
  ]),
  made('spark-submit orders.jar', services.spark(), [
    'Container killed by YARN for exceeding physical memory limits',
    'Task 44 in stage 7.0 failed 4 times; aborting job',
    'Join key customer_id is skewed: 41233117 rows for key 0',
    'OrdersJob.joinCustomers(OrdersJob.scala:142)',
  ]),
]

const DATA: readonly Output[] = [
  held('graphql.json', 'json', {}, data.graphql(), [
    'Depot service timed out after 3000 ms',
    'DOWNSTREAM_TIMEOUT',
    'gid-7083',
  ]),
  held('bank.csv', 'log', { path: 'bookings.csv' }, data.bankCsv(), [
    'booking_date',
    'RE-20226',
    '-48.900,00',
    'CHF',
    'Hansen & Co',
  ]),
  held('manifests.yaml', 'log', { path: 'deploy/all.yaml' }, data.manifests(), [
    'runAsNonRoot: false',
    'memory: 51200Mi',
    'voucher-import',
  ]),
  held('invoices.json', 'json', {}, data.invoicesJson(), ['-18244.5', 'R-30171', 'reverse charge', 'R-30059']),
  made('netstat -tnp', data.netstat(), ['CLOSE_WAIT', '4177', '0.0.0.0:6379', 'Foreign Address']),
  made('./sortline --hall 2', data.inHouse(), [
    'gave up on pallet P-90417 after 5 tries: scale reads 0 kg',
    'put aside at gate 3, needs a person',
    'plan 7731 taken from yesterday',
    'shift closed: 239 pallets moved, 1 put aside',
  ]),
]

export const HELD_OUT: readonly Output[] = [...REAL, ...BUILDS, ...SERVICES, ...DATA]
