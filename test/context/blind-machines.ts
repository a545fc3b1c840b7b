// Generators of what machines, networks and clusters print, for the outputs in blind.ts.
import { clock, dice, hex, lines, NOUNS, pick, two, VERBS } from './held-out-dice.ts'

/** A mail log: most are sent, one domain defers, one mail bounces. */
export function postfix(): string {
  const roll = dice(331)
  return `${lines(90, (i) => {
    const at = (k: number): string => `Nov 16 ${clock(i * 17 + k)} mx-1 postfix`
    const id = hex(roll, 10).toUpperCase()
    const to = `${pick(roll, NOUNS).toLowerCase()}${roll(900)}@mail.example`
    const sent = `to=<${to}>, relay=mx.mail.example[192.0.2.${roll(9)}]:25, delay=0.${roll(99)}, delays=0.05/0/0.2/0.2, dsn=2.0.0, status=sent (250 2.0.0 Ok: queued as ${hex(roll, 10).toUpperCase()})`
    const result =
      i === 22
        ? 'to=<billing@larch.example>, relay=mx.larch.example[203.0.113.4]:25, delay=1.4, delays=0.1/0/0.9/0.4, dsn=5.7.26, status=bounced (host mx.larch.example[203.0.113.4] said: 550 5.7.26 Unauthenticated email from acme.example is not accepted due to domain DMARC policy (in reply to end of DATA command))'
        : i === 71
          ? 'to=<ops@cedar.example>, relay=none, delay=30, delays=0.1/0/30/0, dsn=4.4.1, status=deferred (connect to mx.cedar.example[198.51.100.7]:25: Connection timed out)'
          : sent
    return [
      `${at(0)}/smtpd[${1_000 + i}]: connect from app-${roll(4)}.example[10.4.0.${roll(20)}]`,
      `${at(0)}/smtpd[${1_000 + i}]: ${id}: client=app-${roll(4)}.example[10.4.0.${roll(20)}]`,
      `${at(0)}/cleanup[${3_000 + i}]: ${id}: message-id=<${hex(roll, 16)}@acme.example>`,
      `${at(0)}/qmgr[811]: ${id}: from=<noreply@acme.example>, size=${1_000 + roll(9_000)}, nrcpt=1 (queue active)`,
      `${at(1)}/smtp[${5_000 + i}]: ${id}: ${result}`,
      `${at(1)}/qmgr[811]: ${id}: removed`,
    ]
  }).join('\n')}\n`
}

/** Resources of an application in a cluster: a hook failed, one resource is out of sync. */
export function argocd(): string {
  const roll = dice(332)
  const rows = lines(120, (i) => {
    const name = `${pick(roll, NOUNS).toLowerCase()}-${pick(roll, VERBS)}-${i}`
    if (i === 0)
      return 'batch               Job                    shop       migrate-ledger-0418        Failed     PreSync  Job has reached the specified backoff limit'
    if (i === 66)
      return 'apps                Deployment             shop       tariff-engine              OutOfSync  Degraded          deployment.apps/tariff-engine configured'
    const kind = pick(roll, ['Deployment', 'Service', 'ConfigMap', 'ServiceAccount'])
    return `${(kind === 'Deployment' ? 'apps' : '').padEnd(20)}${kind.padEnd(23)}shop       ${name.padEnd(27)}Synced     ${kind === 'Deployment' || kind === 'Service' ? 'Healthy' : '       '}           ${kind.toLowerCase()}/${name} unchanged`
  })
  return `${[
    'Name:               argocd/shop',
    'Project:            default',
    'Server:             https://kubernetes.default.svc',
    'Namespace:          shop',
    'URL:                https://argocd.example/applications/shop',
    'Source:',
    '- Repo:             https://git.example/acme/deploy.git',
    '  Target:           main',
    '  Path:             overlays/prod',
    'SyncWindow:         Sync Allowed',
    'Sync Policy:        Automated (Prune)',
    'Sync Status:        OutOfSync from main (9c41d07)',
    'Health Status:      Degraded',
    '',
    'Operation:          Sync',
    'Sync Revision:      9c41d07e21b0f1b7a5d3f2f0a6c4e7d8b9a01122',
    'Phase:              Failed',
    'Start:              2026-11-16 08:02:11 +0000 UTC',
    'Finished:           2026-11-16 08:09:40 +0000 UTC',
    'Duration:           7m29s',
    'Message:            one or more synchronization tasks completed unsuccessfully, reason: BackoffLimitExceeded',
    '',
    'GROUP               KIND                   NAMESPACE  NAME                       STATUS     HEALTH   HOOK     MESSAGE',
    ...rows,
  ].join('\n')}\n`
}

/** Captured packets: a normal exchange, and one connection that is reset after its hello was sent again and again. */
export function tcpdump(): string {
  const roll = dice(333)
  const packets = lines(260, (i) => {
    const at = `${clock(Math.floor(i / 9))}.${two((i % 9) * 111_111, 6)}`
    const client = `10.4.0.${10 + roll(6)}.${50_000 + roll(900)}`
    if (i === 140 || i === 149 || i === 167)
      return `${at} IP 10.4.0.31.51877 > 203.0.113.9.443: Flags [P.], seq 1:518, ack 1, win 502, options [nop,nop,TS val 811${i} ecr 0], length 517`
    if (i === 171) return `${at} IP 203.0.113.9.443 > 10.4.0.31.51877: Flags [R.], seq 1, ack 518, win 0, length 0`
    if (i === 139)
      return `${at} IP 10.4.0.1 > 10.4.0.31: ICMP 203.0.113.9 unreachable - need to frag (mtu 1380), length 556`
    const length = 100 + roll(1_300)
    return i % 2 === 0
      ? `${at} IP ${client} > 10.4.1.20.5432: Flags [P.], seq ${roll(90_000)}:${90_000 + length}, ack ${roll(90_000)}, win 501, options [nop,nop,TS val ${roll(90_000_000)} ecr ${roll(90_000_000)}], length ${length}`
      : `${at} IP 10.4.1.20.5432 > ${client}: Flags [.], ack ${roll(90_000)}, win 509, options [nop,nop,TS val ${roll(90_000_000)} ecr ${roll(90_000_000)}], length 0`
  })
  return `tcpdump: verbose output suppressed, use -v[v]... for full protocol decode\nlistening on eth0, link-type EN10MB (Ethernet), snapshot length 262144 bytes\n${packets.join('\n')}\n260 packets captured\n291 packets received by filter\n31 packets dropped by kernel\n`
}

/** Figures of the disks each five seconds. In two of the reports one disk is saturated. */
export function iostat(): string {
  const roll = dice(334)
  const reports = lines(36, (i) => {
    const disks = lines(7, (d) => {
      const name = d < 2 ? `nvme${d}n1` : `sd${'abcde'[d - 2] ?? 'a'}`
      if (name === 'sdd' && (i === 20 || i === 21))
        return `sdd              3.20    102.40     0.00   0.00 4811.${i}   32.00   12.60    403.20     0.00   0.00 9120.${i}   32.00  118.40  99.9${i - 20}`
      const n = (below: number, width: number): string => `${roll(below)}.${two(roll(99))}`.padStart(width)
      return `${name.padEnd(12)}${n(90, 9)}${n(4_000, 10)}${n(4, 9)}${n(3, 7)}${n(2, 8)}${n(60, 8)}${n(90, 8)}${n(4_000, 10)}${n(9, 9)}${n(5, 7)}${n(3, 8)}${n(60, 8)}${n(2, 8)}${n(14, 7)}`
    })
    return [
      'avg-cpu:  %user   %nice %system %iowait  %steal   %idle',
      `          ${roll(20)}.${two(roll(99))}    0.00    ${roll(5)}.${two(roll(99))}   ${i === 20 || i === 21 ? `6${i - 20}.10` : `0.${two(roll(99))}`}    0.00   ${(i === 20 || i === 21 ? 8 : 70) + roll(9)}.${two(roll(99))}`,
      '',
      'Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util',
      ...disks,
      '',
    ]
  })
  return `Linux 6.1.0-21-amd64 (store-3) \t11/16/2026 \t_x86_64_\t(16 CPU)\n\n${reports.join('\n')}\n`
}

/** Statistics of tables in Cassandra. One has far too many tombstones and a partition of gigabytes. */
export function tablestats(): string {
  const roll = dice(335)
  const tables = lines(20, (i) => {
    const bad = i === 13
    return [
      `\t\tTable: ${bad ? 'scan_events' : `${pick(roll, NOUNS).toLowerCase()}_by_${pick(roll, NOUNS).toLowerCase()}_${i}`}`,
      `\t\tSSTable count: ${bad ? 412 : 2 + roll(9)}`,
      '\t\tOld SSTable count: 0',
      `\t\tSpace used (live): ${100_000 + roll(9_000_000)}`,
      `\t\tSpace used (total): ${100_000 + roll(9_000_000)}`,
      '\t\tSpace used by snapshots (total): 0',
      `\t\tOff heap memory used (total): ${roll(90_000)}`,
      `\t\tSSTable Compression Ratio: 0.${two(roll(99_999), 5)}`,
      `\t\tNumber of partitions (estimate): ${roll(90_000)}`,
      `\t\tMemtable cell count: ${roll(9_000)}`,
      `\t\tMemtable data size: ${roll(900_000)}`,
      `\t\tMemtable switch count: ${roll(90)}`,
      `\t\tLocal read count: ${roll(900_000)}`,
      `\t\tLocal read latency: ${bad ? '1840.512' : `0.${two(roll(999), 3)}`} ms`,
      `\t\tLocal write count: ${roll(900_000)}`,
      `\t\tLocal write latency: 0.${two(roll(99), 3)} ms`,
      '\t\tPending flushes: 0',
      `\t\tPercent repaired: ${80 + roll(20)}.0`,
      `\t\tBloom filter false positives: ${roll(9)}`,
      `\t\tCompacted partition minimum bytes: ${40 + roll(60)}`,
      `\t\tCompacted partition maximum bytes: ${bad ? 4_139_110_981 : 1_000 + roll(9_000)}`,
      `\t\tCompacted partition mean bytes: ${100 + roll(900)}`,
      '\t\tAverage live cells per slice (last five minutes): 1.0',
      '\t\tMaximum live cells per slice (last five minutes): 1',
      `\t\tAverage tombstones per slice (last five minutes): ${bad ? '88412.7' : '1.0'}`,
      `\t\tMaximum tombstones per slice (last five minutes): ${bad ? 100_001 : 1}`,
      '\t\tDropped Mutations: 0 bytes',
      '',
    ]
  })
  return `Total number of tables: 20\n----------------\nKeyspace : shop\n\tRead Count: 5518204\n\tRead Latency: 0.4417 ms\n\tWrite Count: 9914022\n\tWrite Latency: 0.0214 ms\n\tPending Flushes: 0\n${tables.join('\n')}\n----------------\n`
}

/** Parts of a column store as its client draws them. One part is broken, one is as large as all others. */
export function clickhouse(): string {
  const roll = dice(336)
  const widths = [12, 31, 9, 12, 11, 22] as const
  const row = (cells: readonly string[]): string =>
    `│ ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 9)).join(' │ ')} │`
  const rows = lines(150, (i) => {
    if (i === 57) return row(['scans', '202606_1_4410_9', '1', '9811204417', '402.11 GiB', ''])
    if (i === 112) return row(['parcels', 'broken-on-start_202610_88_88_0', '0', '0', '0.00 B', 'checksum mismatch'])
    return row([
      pick(roll, ['orders', 'parcels', 'scans']),
      `2026${two(1 + roll(11))}_${roll(900)}_${900 + roll(900)}_${roll(5)}`,
      '1',
      String(10_000 + roll(900_000)),
      `${1 + roll(90)}.${two(roll(99))} MiB`,
      '',
    ])
  })
  const rule = (a: string, b: string, c: string, names: readonly string[]): string =>
    a + widths.map((width, i) => `─${names[i] ?? ''}`.padEnd(width + 2, '─')).join(b) + c
  return `\nSELECT table, name, active, rows, size, reason\nFROM parts_of_shop\n\nQuery id: 3f1a2b60-5b7e-4a63-9f0e-0cbb7d0a9f11\n\n${rule('┌', '┬', '┐', ['table', 'name', 'active', 'rows', 'size', 'reason'])}\n${rows.join('\n')}\n${rule('└', '┴', '┘', [])}\n\n150 rows in set. Elapsed: 0.041 sec. Processed 4.18 thousand rows, 1.20 MB (101.95 thousand rows/s., 29.27 MB/s.)\n`
}

/** The ports of a switch. One is down because of errors, one counts CRC errors. */
export function switchPorts(): string {
  const roll = dice(337)
  return `${lines(36, (i) => {
    const off = i === 28
    const bad = i === 10
    return [
      `GigabitEthernet1/0/${i + 1} is ${off ? 'down, line protocol is down (err-disabled)' : 'up, line protocol is up (connected)'}`,
      `  Hardware is Gigabit Ethernet, address is ${hex(roll, 4)}.${hex(roll, 4)}.${hex(roll, 4)} (bia ${hex(roll, 4)}.${hex(roll, 4)}.${hex(roll, 4)})`,
      `  Description: ${off ? 'uplink hall 4 camera ring' : bad ? 'scale S-17 belt' : `${pick(roll, NOUNS).toLowerCase()} desk ${i}`}`,
      '  MTU 1500 bytes, BW 1000000 Kbit/sec, DLY 10 usec,',
      `     reliability ${bad ? 201 : 255}/255, txload 1/255, rxload 1/255`,
      '  Encapsulation ARPA, loopback not set',
      '  Keepalive set (10 sec)',
      `  ${off ? 'Auto-duplex, Auto-speed' : bad ? 'Half-duplex, 100Mb/s' : 'Full-duplex, 1000Mb/s'}, media type is 10/100/1000BaseTX`,
      '  input flow-control is off, output flow-control is unsupported',
      `  Last input 00:00:${two(roll(59))}, output 00:00:${two(roll(9))}, output hang never`,
      '  Last clearing of "show interface" counters never',
      '  Queueing strategy: fifo',
      `  5 minute input rate ${roll(90_000)} bits/sec, ${roll(90)} packets/sec`,
      `  5 minute output rate ${roll(90_000)} bits/sec, ${roll(90)} packets/sec`,
      `     ${roll(9_000_000)} packets input, ${roll(900_000_000)} bytes, 0 no buffer`,
      `     Received ${roll(90_000)} broadcasts (${roll(9_000)} multicasts)`,
      '     0 runts, 0 giants, 0 throttles',
      `     ${bad ? '418802 input errors, 418640 CRC, 162 frame' : '0 input errors, 0 CRC, 0 frame'}, 0 overrun, 0 ignored`,
      `     ${roll(9_000_000)} packets output, ${roll(900_000_000)} bytes, 0 underruns`,
      `     0 output errors, ${bad ? 90_411 : 0} collisions, 1 interface resets`,
    ]
  }).join('\n')}\n`
}

/** The log of a phone, where an app dies between the chatter of the system. */
export function logcat(): string {
  const roll = dice(338)
  const tags = [
    'WifiHAL',
    'SurfaceFlinger',
    'BatteryStatsService',
    'ActivityManager',
    'chatty',
    'GnssLocationProvider',
  ] as const
  return `--------- beginning of main\n${lines(330, (i) => {
    const at = `11-16 ${clock(Math.floor(i / 6))}.${two(roll(999), 3)}`
    const app = `${at} 14218 14218`
    if (i === 244)
      return [
        `${app} E AndroidRuntime: FATAL EXCEPTION: main`,
        `${app} E AndroidRuntime: Process: example.courier, PID: 14218`,
        `${app} E AndroidRuntime: java.lang.RuntimeException: Unable to start activity ComponentInfo{example.courier/example.courier.ScanActivity}: java.lang.IllegalStateException: camera 0 is held by pid 9120`,
        ...lines(
          9,
          (k) =>
            `${app} E AndroidRuntime: \tat android.app.ActivityThread.step${k}(ActivityThread.java:${3_000 + k * 71})`,
        ),
        `${app} E AndroidRuntime: Caused by: java.lang.IllegalStateException: camera 0 is held by pid 9120`,
        `${app} E AndroidRuntime: \tat example.courier.scan.CameraGate.open(CameraGate.kt:48)`,
        `${app} E AndroidRuntime: \tat example.courier.ScanActivity.onCreate(ScanActivity.kt:31)`,
        `${app} E AndroidRuntime: \t... 11 more`,
        `${at}  1544  4102 W ActivityTaskManager:   Force finishing activity example.courier/.ScanActivity`,
      ]
    const tag = pick(roll, tags)
    return `${at} ${String(1_000 + roll(900)).padStart(5)} ${String(1_000 + roll(4_000)).padStart(5)} ${pick(roll, ['D', 'I', 'V', 'D', 'W', 'E'])} ${tag}: ${pick(roll, ['set state to', 'skipped frame in', 'no such key', 'cannot read property', 'binder reply from'])} ${pick(roll, NOUNS).toLowerCase()}.${roll(900)}`
  }).join('\n')}\n`
}
