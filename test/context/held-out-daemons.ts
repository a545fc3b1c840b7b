// Held-out outputs of services and of tools that keep machines running, in the form that those programs print.
import { clock, dice, hex, lines, NOUNS, pick, two, VERBS } from './held-out-dice.ts'

export function listUnits(): string {
  const roll = dice(31)
  const rows = lines(150, (i) => {
    if (i === 96)
      return '● backup-ledger.service                            loaded failed failed    Nightly copy of the ledger to cold storage'
    const [sub, type] = pick<readonly [string, string]>(roll, [
      ['running', 'service'],
      ['exited', 'service'],
      ['mounted', 'mount'],
      ['waiting', 'timer'],
      ['listening', 'socket'],
    ])
    const name = `${pick(roll, NOUNS).toLowerCase()}-${pick(roll, VERBS)}-${i}.${type}`
    return `  ${name.padEnd(48)} loaded active ${sub.padEnd(9)} ${pick(roll, NOUNS)} ${type} number ${i}`
  })
  return `${[
    '  UNIT                                             LOAD   ACTIVE SUB       DESCRIPTION',
    ...rows,
    '',
    'LOAD   = Reflects whether the unit definition was properly loaded.',
    'ACTIVE = The high-level unit activation state, i.e. generalization of SUB.',
    'SUB    = The low-level unit activation state, values depend on unit type.',
    '150 loaded units listed. Pass --all to see loaded but inactive units, too.',
    "To show all installed unit files use 'systemctl list-unit-files'.",
  ].join('\n')}\n`
}

/** What `SHOW ENGINE INNODB STATUS` prints: a deadlock near the start, then long tables of transactions. */
export function innodbStatus(): string {
  const roll = dice(32)
  const locks = (table: string, id: number): string[] => [
    `RECORD LOCKS space id ${id} page no 4 n bits 72 index PRIMARY of table \`shop\`.\`${table}\` trx id ${id * 997} lock_mode X locks rec but not gap waiting`,
    'Record lock, heap no 2 PHYSICAL RECORD: n_fields 7; compact format; info bits 0',
    ...lines(7, (i) => ` ${i}: len 4; hex ${hex(roll, 8)}; asc     ;;`),
  ]
  return `${[
    '=====================================',
    '2026-11-16 09:14:22 140213 INNODB MONITOR OUTPUT',
    '=====================================',
    'Per second averages calculated from the last 24 seconds',
    '------------------------',
    'LATEST DETECTED DEADLOCK',
    '------------------------',
    '2026-11-16 09:12:07 0x7f3a4c1b2700',
    '*** (1) TRANSACTION:',
    'TRANSACTION 88213, ACTIVE 2 sec starting index read',
    'MySQL thread id 4711, OS thread handle 140213, query id 991 10.0.3.8 shop updating',
    'UPDATE stock SET left_over = left_over - 2 WHERE sku = 1042',
    '*** (1) WAITING FOR THIS LOCK TO BE GRANTED:',
    ...locks('stock', 58),
    '*** (2) TRANSACTION:',
    'TRANSACTION 88214, ACTIVE 3 sec starting index read',
    "UPDATE orders SET state = 'packed' WHERE id = 77120",
    '*** (2) WAITING FOR THIS LOCK TO BE GRANTED:',
    ...locks('orders', 61),
    '*** WE ROLL BACK TRANSACTION (1)',
    '------------',
    'TRANSACTIONS',
    '------------',
    'Trx id counter 88977',
    'History list length 1894211',
    'LIST OF TRANSACTIONS FOR EACH SESSION:',
    ...lines(90, (i) => [
      `---TRANSACTION 4216${two(i * 37, 8)}, not started`,
      `0 lock struct(s), heap size 1128, 0 row lock(s)`,
      ...(i === 61
        ? [
            '---TRANSACTION 71002, ACTIVE 48211 sec',
            '412 lock struct(s), heap size 57464, 90311 row lock(s)',
            'MySQL thread id 220, OS thread handle 139881, query id 17 10.0.3.40 report Sending data',
          ]
        : []),
    ]),
    '--------',
    'FILE I/O',
    '--------',
    ...lines(
      12,
      (i) => `I/O thread ${i} state: waiting for completed aio requests (${i < 6 ? 'read' : 'write'} thread)`,
    ),
    'BUFFER POOL AND MEMORY',
    ...lines(24, (i) => `Pages ${pick(roll, VERBS)} ${i}: ${roll(90_000)}, ${roll(90)}.${two(roll(99))}/s`),
    'Buffer pool hit rate 998 / 1000, young-making rate 0 / 1000 not 0 / 1000',
    '----------------------------',
    'END OF INNODB MONITOR OUTPUT',
    '============================',
  ].join('\n')}\n`
}

export function nginxErrors(): string {
  const roll = dice(33)
  const rows = lines(110, (i) => {
    const at = `2026/11/16 ${clock(i * 41)}`
    const id = `71#71: *${9_000 + i * 3}`
    const tail = `client: 10.2.${roll(9)}.${roll(250)}, server: shop.example, request: "GET /${pick(roll, NOUNS).toLowerCase()}/${roll(900)} HTTP/2.0", host: "shop.example"`
    if (i === 57)
      return `${at} [crit] 71#71: *${9_000 + i * 3} SSL_do_handshake() failed (SSL: error:0A000086:SSL routines::certificate verify failed) while SSL handshaking to upstream, client: 10.2.1.9, server: shop.example, upstream: "https://10.0.9.14:8443/pay"`
    if (i === 88) return `${at} [alert] 1#1: worker process 71 exited on signal 11`
    if (roll(3) === 0)
      return `${at} [warn] ${id} an upstream response is buffered to a temporary file /var/cache/nginx/proxy_temp/${roll(9)}/${two(roll(99))}/${two(i, 10)} while reading upstream, ${tail}`
    return `${at} [error] ${id} open() "/usr/share/nginx/html/${pick(roll, VERBS)}-${roll(99)}.png" failed (2: No such file or directory), ${tail}`
  })
  return `${rows.join('\n')}\n`
}

export function haproxy(): string {
  const roll = dice(34)
  const rows = lines(220, (i) => {
    const at = `Nov 16 ${clock(i * 2)} lb-2 haproxy[318]:`
    if (i === 139)
      return `${at} Server be_pay/pay-3 is DOWN, reason: Layer4 timeout, check duration: 2001ms. 2 active and 0 backup servers left. 11 sessions active, 0 requeued, 0 remaining in queue.`
    if (i === 143)
      return `${at} 10.4.1.77:51234 [16/Nov/2026:${clock(i * 2)}.114] fe_https be_pay/<NOSRV> 0/5000/-1/-1/5000 503 217 - - sQ-- 88/80/40/0/0 0/19 "POST /pay HTTP/1.1"`
    const backend = pick(roll, ['be_shop/shop-1', 'be_shop/shop-2', 'be_pay/pay-1', 'be_pay/pay-2', 'be_img/img-1'])
    return `${at} 10.4.${roll(9)}.${roll(250)}:${40_000 + roll(20_000)} [16/Nov/2026:${clock(i * 2)}.${two(roll(999), 3)}] fe_https ${backend} 0/0/${roll(3)}/${4 + roll(60)}/${6 + roll(70)} 200 ${500 + roll(9_000)} - - ---- ${40 + roll(9)}/${30 + roll(9)}/${roll(9)}/${roll(4)}/0 0/0 "GET /${pick(roll, NOUNS).toLowerCase()}/${roll(5_000)} HTTP/1.1"`
  })
  return `${rows.join('\n')}\n`
}

export function sshVerbose(): string {
  const roll = dice(35)
  const keys = ['id_rsa', 'id_ecdsa', 'id_ecdsa_sk', 'id_ed25519', 'id_ed25519_sk', 'id_xmss', 'id_dsa']
  return `${[
    'OpenSSH_9.2p1 Debian-2+deb12u2, OpenSSL 3.0.11 19 Sep 2023',
    'debug1: Reading configuration data /home/user/.ssh/config',
    ...lines(
      40,
      (i) =>
        `debug3: /home/user/.ssh/config line ${i * 3 + 1}: Skipping Host block because of negated match for ${pick(roll, NOUNS).toLowerCase()}-${i}.example`,
    ),
    'debug1: Connecting to build-7.example [10.0.7.7] port 22.',
    'debug1: Connection established.',
    ...keys.flatMap((key) => [
      `debug1: identity file /home/user/.ssh/${key} type ${key === 'id_ed25519' ? 3 : -1}`,
      `debug1: identity file /home/user/.ssh/${key}-cert type -1`,
    ]),
    'debug1: Local version string SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u2',
    'debug1: Remote protocol version 2.0, remote software version OpenSSH_8.4p1',
    'debug2: local client KEXINIT proposal',
    ...lines(
      22,
      (i) =>
        `debug2: ${['ciphers ctos', 'ciphers stoc', 'MACs ctos', 'MACs stoc'][i % 4]}: aes128-ctr,aes192-ctr,aes256-ctr,chacha20-poly1305@openssh.com,aes128-gcm@openssh.com`,
    ),
    'debug3: send packet: type 30',
    'debug3: receive packet: type 31',
    `debug1: Server host key: ssh-ed25519 SHA256:${hex(roll, 43)}`,
    ...lines(
      30,
      (i) =>
        `debug3: record_hostkey: found key type ${pick(roll, ['ED25519', 'RSA', 'ECDSA'])} in file /home/user/.ssh/known_hosts:${i * 7 + 2}`,
    ),
    "debug1: Host 'build-7.example' is known and matches the ED25519 host key.",
    'debug1: Authentications that can continue: publickey',
    'debug1: Offering public key: /home/user/.ssh/id_ed25519 ED25519 SHA256:4kq agent',
    'debug3: send packet: type 50',
    'debug2: we sent a publickey packet, wait for reply',
    'debug3: receive packet: type 51',
    'debug1: Authentications that can continue: publickey',
    ...keys
      .filter((key) => key !== 'id_ed25519')
      .flatMap((key) => [
        `debug1: Trying private key: /home/user/.ssh/${key}`,
        `debug3: no such identity: /home/user/.ssh/${key}: No such file or directory`,
      ]),
    'debug2: we did not send a packet, disable method',
    'debug1: No more authentication methods to try.',
    'deploy@build-7.example: Permission denied (publickey).',
  ].join('\n')}\n`
}

export function rsync(): string {
  const roll = dice(36)
  const files = lines(330, (i) => {
    if (i === 187)
      return [
        'rsync: [receiver] write failed on "/srv/photos/2026/11/IMG_4471.dng": No space left on device (28)',
        'rsync error: error in file IO (code 11) at receiver.c(381) [receiver=3.2.7]',
      ]
    if (i > 187) return []
    if (i % 24 === 0) return `photos/${2010 + Math.floor(i / 24)}/`
    return `photos/${2010 + Math.floor(i / 24)}/${two(1 + roll(12))}/IMG_${two(roll(9_999), 4)}.${pick(roll, ['dng', 'jpg', 'xmp', 'heic'])}`
  })
  const later = lines(
    120,
    (i) =>
      `rsync: [generator] failed to set times on "/srv/photos/${2010 + (i % 16)}/${two(1 + roll(12))}": Read-only file system (30)`,
  )
  return `${['sending incremental file list', './', ...files, ...later, '', 'sent 48,211,904 bytes  received 12,811 bytes  2,143,320.67 bytes/sec', 'total size is 91,220,117,504  speedup is 1,891.58', 'rsync: [sender] write error: Broken pipe (32)'].join('\n')}\n`
}

export function apt(): string {
  const roll = dice(37)
  const names = lines(70, (i) => `lib${pick(roll, NOUNS).toLowerCase()}${i}`)
  return `${[
    'Reading package lists...',
    'Building dependency tree...',
    'The following packages will be upgraded:',
    ...lines(10, (i) => `  ${names.slice(i * 7, i * 7 + 7).join(' ')}`),
    '71 upgraded, 0 newly installed, 0 to remove and 3 not upgraded.',
    ...names.map(
      (name, i) =>
        `Get:${i + 1} http://mirror.example/debian bookworm/main amd64 ${name} amd64 2.${roll(40)}-${roll(9)} [${20 + roll(900)} kB]`,
    ),
    'Fetched 41.2 MB in 6s (6,871 kB/s)',
    ...names.flatMap((name, i) => [
      `Preparing to unpack .../${two(i)}-${name}_2.${roll(40)}_amd64.deb ...`,
      `Unpacking ${name} (2.${roll(40)}) over (2.1) ...`,
    ]),
    ...names.slice(0, 34).map((name) => `Setting up ${name} (2.${roll(40)}) ...`),
    'Setting up postfix (3.7.11-0+deb12u1) ...',
    'newaliases: fatal: bad string length 0 < 1: mydomain = ',
    'dpkg: error processing package postfix (--configure):',
    ' installed postfix package post-installation script subprocess returned error exit status 75',
    ...names.slice(34).map((name) => `Setting up ${name} (2.${roll(40)}) ...`),
    'Processing triggers for man-db (2.11.2-2) ...',
    'Processing triggers for libc-bin (2.36-9+deb12u7) ...',
    'Errors were encountered while processing:',
    ' postfix',
    'E: Sub-process /usr/bin/dpkg returned an error code (1)',
  ].join('\n')}\n`
}

export function pip(): string {
  const roll = dice(38)
  return `${[
    ...lines(75, (i) => {
      const name = `${pick(roll, NOUNS).toLowerCase()}-${pick(roll, VERBS)}${i}`
      return [
        `Collecting ${name}>=${roll(4)}.${roll(9)} (from -r requirements.txt (line ${i + 1}))`,
        `  Downloading ${name.replace('-', '_')}-${roll(4)}.${roll(20)}.0-py3-none-any.whl.metadata (${1 + roll(9)}.${roll(9)} kB)`,
      ]
    }),
    'INFO: pip is looking at multiple versions of dbt-shop to determine which version is compatible with other requirements. This could take a while.',
    ...lines(18, (i) => `  Downloading dbt_shop-1.${18 - i}.0-py3-none-any.whl.metadata (4.${roll(9)} kB)`),
    'ERROR: Cannot install -r requirements.txt (line 12), -r requirements.txt (line 41) and protobuf==5.26.1 because these package versions have conflicting dependencies.',
    '',
    'The conflict is caused by:',
    '    The user requested protobuf==5.26.1',
    '    dbt-shop 1.18.0 depends on protobuf<5 and >=4.0.0',
    '    grpcio-status 1.62.1 depends on protobuf>=4.21.6',
    '',
    'To fix this you could try to:',
    "1. loosen the range of package versions you've specified",
    '2. remove package versions to allow pip attempt to solve the dependency conflict',
    '',
    'ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/en/latest/topics/dependency-resolution/#dealing-with-dependency-conflicts',
  ].join('\n')}\n`
}

export function kafka(): string {
  const roll = dice(39)
  const rows = lines(210, (i) => {
    const at = `[2026-11-16 ${clock(i * 11)},${two(roll(999), 3)}]`
    const part = `${pick(roll, NOUNS).toLowerCase()}s-${roll(24)}`
    if (i === 102)
      return `${at} INFO [Partition payments-7 broker=2] Shrinking ISR from 1,2,3 to 2. Leader: (highWatermark: 88120, endOffset: 88977). Out of sync replicas: (brokerId: 1, endOffset: 88120) (brokerId: 3, endOffset: 88120). (kafka.cluster.Partition)`
    if (i === 104)
      return `${at} ERROR [ReplicaManager broker=2] Error processing append operation on partition payments-7 (kafka.server.ReplicaManager)\norg.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(2) is insufficient to satisfy the min.isr requirement of 2 for partition payments-7`
    return pick(roll, [
      `${at} INFO [LocalLog partition=${part}, dir=/var/lib/kafka] Rolled new log segment at offset ${roll(900_000)} in ${roll(20)} ms. (kafka.log.LocalLog)`,
      `${at} INFO [ProducerStateManager partition=${part}] Wrote producer snapshot at offset ${roll(900_000)} with ${roll(9)} producer ids in ${roll(9)} ms. (org.apache.kafka.storage.internals.log.ProducerStateManager)`,
      `${at} INFO [GroupCoordinator 2]: Stabilized group ${pick(roll, NOUNS).toLowerCase()}-readers generation ${roll(90)} (__consumer_offsets-${roll(50)}) with ${1 + roll(9)} members (kafka.coordinator.group.GroupCoordinator)`,
    ])
  })
  return `${rows.join('\n')}\n`
}

export function airflow(): string {
  const roll = dice(40)
  const at = (i: number): string => `[2026-11-16T${clock(i)}.${two(roll(999), 3)}+0000]`
  return `${[
    `${at(0)} {taskinstance.py:2077} INFO - Dependencies all met for dep_context=requeueable deps ti=<TaskInstance: load_orders.copy_to_lake scheduled__2026-11-15 [queued]>`,
    `${at(1)} {taskinstance.py:2303} INFO - Starting attempt 3 of 3`,
    ...lines(
      90,
      (i) =>
        `${at(2 + i)} {copy_to_lake.py:${40 + roll(9)}} INFO - wrote chunk ${i} with ${9_000 + roll(999)} rows to lake/orders/day=2026-11-15/part-${two(i, 5)}.parquet`,
    ),
    `${at(93)} {copy_to_lake.py:61} WARNING - chunk 90 has 0 rows, the source may be late`,
    ...lines(
      70,
      (i) =>
        `${at(94 + i)} {copy_to_lake.py:${40 + roll(9)}} INFO - wrote chunk ${91 + i} with ${9_000 + roll(999)} rows to lake/orders/day=2026-11-15/part-${two(91 + i, 5)}.parquet`,
    ),
    `${at(170)} {taskinstance.py:2905} ERROR - Task failed with exception`,
    'Traceback (most recent call last):',
    '  File "/usr/local/lib/python3.11/site-packages/airflow/models/taskinstance.py", line 465, in _execute_task',
    '    result = _execute_callable(context=context, **execute_callable_kwargs)',
    '  File "/app/dags/copy_to_lake.py", line 88, in close_day',
    '    raise CountMismatch(day, expected, written)',
    'copy_to_lake.CountMismatch: 2026-11-15: source has 1,522,904 rows, lake has 1,513,911',
    `${at(171)} {taskinstance.py:1206} INFO - Marking task as FAILED. dag_id=load_orders, task_id=copy_to_lake, run_id=scheduled__2026-11-15, execution_date=20261115T000000`,
    `${at(172)} {local_task_job_runner.py:240} INFO - Task exited with return code 1`,
  ].join('\n')}\n`
}

export function spark(): string {
  const roll = dice(41)
  const frames = lines(
    38,
    (i) =>
      `\tat org.apache.spark.${pick(roll, ['rdd.RDD', 'scheduler.DAGScheduler', 'sql.execution.SparkPlan', 'executor.Executor'])}.${pick(roll, VERBS)}$${i}(${pick(roll, NOUNS)}.scala:${roll(900)})`,
  )
  const quiet = (count: number, from: number): string[] =>
    lines(
      count,
      (i) =>
        `26/11/16 ${clock(from + i)} INFO TaskSetManager: Finished task ${i}.0 in stage ${Math.floor(from / 100)}.0 (TID ${from + i}) in ${roll(4_000)} ms on 10.0.5.${roll(20)} (executor ${roll(12)}) (${i + 1}/${count})`,
    )
  return `${[
    ...quiet(90, 100),
    '26/11/16 08:03:12 WARN TaskSetManager: Lost task 44.0 in stage 7.0 (TID 744) (10.0.5.12 executor 9): ExecutorLostFailure (executor 9 exited caused by one of the running tasks) Reason: Container killed by YARN for exceeding physical memory limits. 18.2 GB of 18 GB physical memory used.',
    ...quiet(90, 300),
    '26/11/16 08:09:40 ERROR TaskSetManager: Task 44 in stage 7.0 failed 4 times; aborting job',
    'Exception in thread "main" org.apache.spark.SparkException: Job aborted due to stage failure: Task 44 in stage 7.0 failed 4 times, most recent failure: Lost task 44.3 in stage 7.0 (TID 1190) (10.0.5.14 executor 11)',
    ...frames,
    'Caused by: java.lang.IllegalArgumentException: Join key customer_id is skewed: 41233117 rows for key 0',
    '\tat com.example.lake.OrdersJob.joinCustomers(OrdersJob.scala:142)',
    ...frames.slice(0, 20),
    '26/11/16 08:09:42 INFO SparkContext: Successfully stopped SparkContext',
    '26/11/16 08:09:42 INFO ShutdownHookManager: Shutdown hook called',
  ].join('\n')}\n`
}
