// Generators of what services, cloud clients and databases print, for the outputs in blind.ts.
import { clock, dice, hex, lines, NOUNS, pick, two, VERBS } from './held-out-dice.ts'

/** A load test: a line per second, one burst of refused requests, and the table of figures at the end. */
export function k6(): string {
  const progress = lines(150, (i) => {
    const running = `running (${Math.floor(i / 30)}m${two((i * 2) % 60)}.0s), ${two(Math.min(200, i * 4), 3)}/200 VUs, ${i * 311} complete and 0 interrupted iterations`
    const bar = `browse   [ ${String(Math.floor((i / 150) * 100)).padStart(3)}% ] ${two(Math.min(200, i * 4), 3)}/200 VUs  ${Math.floor(i / 30)}m${two((i * 2) % 60)}.0s/5m00.0s`
    if (i >= 92 && i < 96)
      return [
        `time="2026-11-16T${clock(i * 2)}Z" level=warning msg="Request Failed" error="Post \\"https://shop.example/basket\\": dial tcp 10.4.0.9:443: connect: connection refused"`,
        running,
        bar,
      ]
    return [running, bar]
  })
  return `${[
    '',
    '     execution: local',
    '        script: browse.js',
    '        output: -',
    '',
    '     scenarios: (100.00%) 1 scenario, 200 max VUs, 5m30s max duration (incl. graceful stop):',
    '              * browse: Up to 200 looping VUs for 5m0s over 2 stages',
    '',
    ...progress,
    '',
    '     ✓ listing is 200',
    '     ✗ basket is 201',
    '      ↳  91% — ✓ 42460 / ✗ 4190',
    '',
    '     checks.........................: 95.50% ✓ 89110      ✗ 4190',
    '     data_received..................: 1.9 GB 6.3 MB/s',
    '     http_req_blocked...............: avg=18.2µs  min=812ns   med=2.91µs  max=188.4ms p(90)=4.4µs    p(95)=5.9µs',
    '   ✗ http_req_duration..............: avg=412.7ms min=3.81ms  med=201.4ms max=30.01s  p(90)=911.02ms p(95)=1.84s',
    '   ✓ http_req_failed................: 4.49%  ✓ 4190       ✗ 89110',
    '     iterations.....................: 46650  155.3/s',
    '     vus............................: 200    min=0        max=200',
    '',
    `time="2026-11-16T${clock(330)}Z" level=error msg="thresholds on metrics 'http_req_duration' have been crossed"`,
  ].join('\n')}\n`
}

/** The table of vulnerabilities of an image, with one critical row that has a fix. */
export function trivy(): string {
  const roll = dice(322)
  const row = (cells: readonly string[]): string =>
    `│ ${cells.map((cell, i) => cell.padEnd([20, 16, 8, 12, 20, 18, 52][i] ?? 8)).join(' │ ')} │`
  const rule = (a: string, b: string, c: string): string =>
    a + [20, 16, 8, 12, 20, 18, 52].map((width) => '─'.repeat(width + 2)).join(b) + c
  const rows = lines(84, (i) => {
    const cells =
      i === 47
        ? [
            'libwebp7',
            'CVE-2023-4863',
            'CRITICAL',
            'fixed',
            '1.2.4-0.2',
            '1.2.4-0.2+deb12u1',
            'libwebp: Heap buffer overflow in WebP Codec',
          ]
        : [
            `lib${pick(roll, NOUNS).toLowerCase()}${roll(9)}`,
            `CVE-20${two(11 + roll(13))}-${1_000 + roll(40_000)}`,
            pick(roll, ['LOW', 'LOW', 'LOW', 'MEDIUM']),
            pick(roll, ['affected', 'affected', 'will_not_fix']),
            `${roll(9)}.${roll(30)}-${roll(9)}`,
            '',
            `${pick(roll, NOUNS).toLowerCase()}: ${pick(roll, ['out-of-bounds read in', 'uncontrolled recursion in', 'integer overflow in', 'race condition in'])} ${pick(roll, VERBS)}`,
          ]
    return [row(cells), rule('├', '┼', '┤')]
  })
  return `${[
    '2026-11-16T08:00:01Z\tINFO\t[vuln] Vulnerability scanning is enabled',
    '2026-11-16T08:00:04Z\tINFO\tDetected OS\tfamily="debian" version="12.5"',
    '',
    'basket:1.18 (debian 12.5)',
    '=========================',
    'Total: 84 (UNKNOWN: 0, LOW: 62, MEDIUM: 21, HIGH: 0, CRITICAL: 1)',
    '',
    rule('┌', '┬', '┐'),
    row(['Library', 'Vulnerability', 'Severity', 'Status', 'Installed Version', 'Fixed Version', 'Title']),
    rule('├', '┼', '┤'),
    ...rows.slice(0, -1),
    rule('└', '┴', '┘'),
  ].join('\n')}\n`
}

/** An update of a cloud stack: a replaced database among many small changes, and a failure of the provider. */
export function pulumi(): string {
  const roll = dice(323)
  const resources = lines(140, (i) => {
    const name = `${pick(roll, NOUNS).toLowerCase()}-${i}`
    const type = pick(roll, ['aws:iam:RolePolicy', 'aws:s3:Bucket', 'aws:lambda:Function', 'aws:sqs:Queue'])
    if (i === 34)
      return ' +-  ├─ aws:rds:Instance                     ledger-db            replaced (611s)      [diff: ~storageEncrypted]'
    if (i === 101)
      return ' +   ├─ aws:lambda:Function                  stamp-duty           **creating failed**  error: 1 error occurred:'
    return ` ${i % 4 === 0 ? '~ ' : i % 4 === 1 ? '+ ' : '  '}  ├─ ${type.padEnd(36)} ${name.padEnd(20)} ${i % 4 === 0 ? `updated (${roll(20)}s)        [diff: ~tags]` : i % 4 === 1 ? `created (${roll(20)}s)` : ''}`
  })
  return `${[
    'Updating (prod)',
    '',
    'View in Browser (Ctrl+O): https://app.pulumi.example/acme/shop/prod/updates/418',
    '',
    '     Type                                    Name                 Status               Info',
    '     pulumi:pulumi:Stack                     shop-prod            **failed**           1 error',
    ...resources,
    '',
    'Diagnostics:',
    '  pulumi:pulumi:Stack (shop-prod):',
    '    error: update failed',
    '',
    '  aws:lambda:Function (stamp-duty):',
    '    error: 1 error occurred:',
    '    \t* creating Lambda Function (stamp-duty): operation error Lambda: CreateFunction, https response error StatusCode: 400, InvalidParameterValueException: Unzipped size must be smaller than 262144000 bytes',
    '',
    'Outputs:',
    ...lines(
      30,
      (i) => `    ${pick(roll, NOUNS).toLowerCase()}Url${i}: "https://${hex(roll, 10)}.example/${pick(roll, VERBS)}"`,
    ),
    '',
    'Resources:',
    '    + 35 created',
    '    ~ 35 updated',
    '    +-1 replaced',
    '    69 unchanged',
    '',
    'Duration: 11m4s',
  ].join('\n')}\n`
}

/** Events of a stack as a table, newest first: the cause stands far below the roll-back. */
export function stackEvents(): string {
  const roll = dice(324)
  const bar =
    '+----------------------------+------------------------+------------------------------+-----------------------------+------------------------------------------------------------------------+'
  const row = (time: string, id: string, type: string, status: string, reason: string): string =>
    `|  ${time.padEnd(26)}|  ${id.padEnd(22)}|  ${type.padEnd(28)}|  ${status.padEnd(27)}|  ${reason.padEnd(70)}|`
  const rows = lines(160, (i) => {
    const time = `2026-11-16T${clock(5_000 - i * 9)}.${two(roll(999), 3)}Z`
    const id = `${pick(roll, NOUNS)}${pick(roll, NOUNS)}${roll(90)}`
    const type = pick(roll, ['AWS::EC2::Subnet', 'AWS::IAM::Role', 'AWS::ECS::Service', 'AWS::Logs::LogGroup'])
    if (i === 0) return row(time, 'shop-prod', 'AWS::CloudFormation::Stack', 'ROLLBACK_COMPLETE', 'None')
    if (i === 78)
      return row(
        time,
        'LedgerReplica',
        'AWS::RDS::DBInstance',
        'CREATE_FAILED',
        'DB Instance class db.t2.micro does not support encryption at rest',
      )
    if (i === 77) return row(time, 'LabelQueue', 'AWS::SQS::Queue', 'CREATE_FAILED', 'Resource creation cancelled')
    if (i < 77) return row(time, id, type, i % 2 === 0 ? 'DELETE_COMPLETE' : 'DELETE_IN_PROGRESS', 'None')
    return row(
      time,
      id,
      type,
      i % 2 === 0 ? 'CREATE_COMPLETE' : 'CREATE_IN_PROGRESS',
      i % 2 === 0 ? 'None' : 'Resource creation Initiated',
    )
  })
  return `${'-'.repeat(bar.length)}\n|${'DescribeStackEvents'.padStart(100).padEnd(bar.length - 2)}|\n${bar}\n${row('Timestamp', 'LogicalResourceId', 'ResourceType', 'ResourceStatus', 'ResourceStatusReason')}\n${bar}\n${rows.join('\n')}\n${bar}\n`
}

/** The slow log of Redis as its client prints it. One command took five seconds. */
export function slowlog(): string {
  const roll = dice(325)
  return `${lines(128, (i) => {
    const n = `${i + 1}) `.padStart(5)
    const slow = i === 83
    const words = slow
      ? ['KEYS', 'session:*:basket']
      : pick(roll, [
          ['HGETALL', `order:${roll(90_000)}`],
          ['ZRANGEBYSCORE', `due:${roll(90)}`, '-inf', '+inf'],
          ['LRANGE', `feed:${roll(900)}`, '0', '499'],
        ])
    return [
      `${n}1) (integer) ${9_130 - i}`,
      `     2) (integer) ${1_794_800_000 - i * 71}`,
      `     3) (integer) ${slow ? 5_218_404 : 10_000 + roll(9_000)}`,
      ...words.map((word, at) => `${at === 0 ? '     4) ' : '        '}${at + 1}) "${word}"`),
      `     5) "10.4.${slow ? 77 : roll(4)}.${slow ? 12 : roll(250)}:${40_000 + roll(9_000)}"`,
      `     6) "${slow ? 'report-cron' : `web-${roll(8)}`}"`,
    ]
  }).join('\n')}\n`
}

/** The structured log of MongoDB, where a primary steps down between slow queries. */
export function mongod(): string {
  const roll = dice(326)
  return `${lines(130, (i) => {
    const t = `{"t":{"$date":"2026-11-16T${clock(i * 11)}.${two(roll(999), 3)}+00:00"}`
    if (i === 58)
      return `${t},"s":"I",  "c":"REPL",     "id":21809,   "ctx":"ReplCoord-14","msg":"Can't see a majority of the set, relinquishing primary"}`
    if (i === 60)
      return `${t},"s":"I",  "c":"REPL",     "id":21358,   "ctx":"ReplCoord-14","msg":"Replica set state transition","attr":{"newState":"SECONDARY","oldState":"PRIMARY"}}`
    if (i === 104)
      return `${t},"s":"E",  "c":"WT",       "id":22435,   "ctx":"Checkpointer","msg":"WiredTiger error message","attr":{"error":28,"message":{"msg":"__posix_file_write:640:/data/db/collection-7-114.wt: handle-write: pwrite: failed to write 4096 bytes","error_str":"No space left on device","error_code":28}}}`
    if (i % 3 === 0)
      return `${t},"s":"I",  "c":"COMMAND",  "id":51803,   "ctx":"conn${4_000 + roll(900)}","msg":"Slow query","attr":{"type":"command","ns":"shop.${pick(roll, NOUNS).toLowerCase()}s","command":{"find":"${pick(roll, NOUNS).toLowerCase()}s","filter":{"state":"open","depot":${roll(90)}},"limit":50,"lsid":{"id":{"$uuid":"${hex(roll, 8)}-${hex(roll, 4)}"}}},"planSummary":"IXSCAN { state: 1 }","keysExamined":${roll(9_000)},"docsExamined":${roll(9_000)},"durationMillis":${100 + roll(90)}}}`
    return `${t},"s":"I",  "c":"NETWORK",  "id":${i % 3 === 1 ? 22943 : 22944},   "ctx":"${i % 3 === 1 ? 'listener' : `conn${4_000 + roll(900)}`}","msg":"Connection ${i % 3 === 1 ? 'accepted' : 'ended'}","attr":{"remote":"10.4.${roll(4)}.${roll(250)}:${40_000 + roll(9_000)}","connectionId":${4_000 + roll(900)},"connectionCount":${100 + roll(30)}}}`
  }).join('\n')}\n`
}

/** Shards of a search cluster, two of which have no node. */
export function catShards(): string {
  const roll = dice(327)
  const rows = lines(240, (i) => {
    const index = `orders-2026.${two(1 + Math.floor(i / 24))}.${two(1 + (Math.floor(i / 2) % 12))}`
    if (i === 131 || i === 132)
      return `orders-2026.06.06   ${i - 131}     ${i === 131 ? 'p' : 'r'}      UNASSIGNED                          ${i === 131 ? 'ALLOCATION_FAILED' : 'REPLICA_ADDED'}`
    const node = roll(6)
    return `${index}   ${i % 2}     ${i % 2 === 0 ? 'p' : 'r'}      STARTED    ${String(100_000 + roll(900_000)).padStart(8)} ${String(100 + roll(900)).padStart(6)}mb 10.4.2.${10 + node} es-data-${node}`
  })
  return `index               shard prirep state          docs    store ip        node      unassigned.reason\n${rows.join('\n')}\n`
}

/** The log of RabbitMQ, with a crash report over many lines in the middle and an alarm near the end. */
export function rabbit(): string {
  const roll = dice(328)
  return `${lines(220, (i) => {
    const at = `2026-11-16 ${clock(i * 13)}.${two(roll(999_999), 6)}+00:00`
    const pid = `<0.${10_000 + roll(9_000)}.0>`
    const peer = `10.4.${roll(4)}.${roll(250)}:${40_000 + roll(9_000)} -> 10.4.1.20:5672`
    if (i === 109)
      return [
        `${at} [error] <0.12907.0>   crasher:`,
        '    initial call: rabbit_reader:init/3',
        '    pid: <0.12907.0>',
        '    registered_name: []',
        '    exception exit: {handshake_timeout,frame_header}',
        '      in function  rabbit_reader:handle_other/2 (rabbit_reader.erl, line 670)',
        '      in call from rabbit_reader:mainloop/4 (rabbit_reader.erl, line 545)',
        '    ancestors: [<0.12905.0>,<0.811.0>,<0.810.0>,rabbit_sup,<0.230.0>]',
        '    message_queue_len: 1',
        '    links: [<0.12905.0>]',
        '    trap_exit: true',
        '    status: running',
        '    heap_size: 2586',
        '    reductions: 9114',
        '  neighbours:',
      ]
    if (i === 197)
      return [
        `${at} [info] <0.489.0> vm_memory_high_watermark set. Memory used:6871002112 allowed:6713376768`,
        `${at} [warning] <0.487.0> memory resource limit alarm set on node 'rabbit@mq-2'.`,
        `${at} [warning] <0.487.0> *** Publishers will be blocked until this alarm clears ***`,
      ]
    if (i % 3 === 0) return `${at} [info] ${pid} accepting AMQP connection ${pid} (${peer})`
    if (i % 3 === 1)
      return `${at} [info] ${pid} connection ${pid} (${peer}): user 'shop' authenticated and granted access to vhost '/'`
    return `${at} [info] ${pid} closing AMQP connection ${pid} (${peer}, vhost: '/', user: 'shop')`
  }).join('\n')}\n`
}
