// Generators of what the tools of a machine and of its network print, for the outputs in fresh.ts.
import { clock, dice, hex, lines, pick, two } from './held-out-dice.ts'

const PROGRAMS = [
  'java',
  'node',
  'postgres',
  'nginx',
  'python3',
  'containerd',
  'kubelet',
  'sshd',
  'systemd',
  'rsyslogd',
  'redis-server',
] as const

/** Three rounds of top in batch mode; in the second one the machine waits for its disk and one process is very large. */
export function top(): string {
  const roll = dice(4_601)
  const rounds = [0, 1, 2].flatMap((round) => {
    const wait = round === 1
    return [
      `top - ${clock(round * 5, 14)} up 41 days,  3:12,  2 users,  load average: ${wait ? '37.92' : `3.${two(roll(99))}`}, 4.${two(roll(99))}, 3.${two(roll(99))}`,
      `Tasks: 412 total,   ${1 + roll(4)} running, 409 sleeping,   0 stopped,   0 zombie`,
      wait
        ? '%Cpu(s):  4.1 us,  6.0 sy,  0.0 ni, 11.8 id, 77.9 wa,  0.0 hi,  0.2 si,  0.0 st'
        : `%Cpu(s): 1${roll(9)}.1 us,  3.0 sy,  0.0 ni, 82.${roll(9)} id,  0.4 wa,  0.0 hi,  0.1 si,  0.0 st`,
      `MiB Mem :  64216.9 total,  ${wait ? '  291.4' : '11840.2'} free,  ${wait ? '61902.0' : '40112.8'} used,   9121.3 buff/cache`,
      'MiB Swap:   8192.0 total,   8192.0 free,      0.0 used.  21904.1 avail Mem',
      '',
      '    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND',
      ...lines(66, (i) => {
        if (wait && i === 23)
          return ' 118204 report    20   0   49.8g  44.1g   9120 D   2.3  70.3  12:41.07 stock-age-pivot'
        const cpu = i < 6 ? 30 - i * 4 + roll(4) : roll(2)
        return `${String(900 + roll(90_000)).padStart(7)} ${pick(roll, ['root    ', 'shop    ', 'postgres', 'www-data'])}  20   0 ${String(90_000 + roll(4_000_000)).padStart(7)} ${String(4_000 + roll(700_000)).padStart(6)} ${String(2_000 + roll(20_000)).padStart(6)} S ${String(cpu).padStart(3)}.${roll(9)}   ${roll(3)}.${roll(9)} ${String(roll(300)).padStart(4)}:${two(roll(60))}.${two(roll(99))} ${pick(roll, PROGRAMS)}`
      }),
      '',
    ]
  })
  return `${rounds.join('\n')}\n`
}

/** The counters of a network card: errors are zero but for two of the wire, and one queue of sixteen has no packets. */
export function ethtool(): string {
  const roll = dice(4_602)
  const count = (): number => 18_000_000 + roll(9_000_000)
  const queues = Array.from({ length: 16 }, (_, queue) => {
    const idle = queue === 11
    return [
      `     rx${queue}_packets: ${idle ? 0 : count()}`,
      `     rx${queue}_bytes: ${idle ? '0' : `${count()}${two(roll(999), 3)}`}`,
      `     rx${queue}_csum_complete: ${idle ? 0 : count()}`,
      `     rx${queue}_buff_alloc_err: 0`,
      `     rx${queue}_cqe_compress_blks: ${idle ? 0 : roll(90_000)}`,
      `     rx${queue}_xdp_drop: 0`,
    ]
  }).flat()
  const sent = Array.from({ length: 16 }, (_, queue) => [
    `     tx${queue}_packets: ${count()}`,
    `     tx${queue}_bytes: ${count()}${two(roll(999), 3)}`,
    `     tx${queue}_stopped: ${roll(3)}`,
    `     tx${queue}_dropped: 0`,
    `     tx${queue}_recover: 0`,
  ]).flat()
  const port = [
    'rx_undersize_pkts',
    'rx_fragments_phy',
    'rx_jabbers_phy',
    'rx_symbol_err_phy',
    'tx_errors_phy',
    'rx_discards_phy',
    'tx_discards_phy',
    'rx_pcs_symbol_err_phy',
    'rx_corrected_bits_phy',
    'rx_steer_missed_packets',
    'outbound_pci_stalled_wr',
  ].map((name) => `     ${name}: 0`)
  const lanes = lines(
    56,
    (i) =>
      `     rx_prio${i % 8}_${pick(roll, ['bytes', 'packets', 'pause', 'discards'])}_${i}: ${i % 8 === 0 ? count() : 0}`,
  )
  return `${[
    'NIC statistics:',
    `     rx_packets: ${count()}9`,
    `     tx_packets: ${count()}4`,
    ...queues,
    ...port.slice(0, 6),
    '     rx_crc_errors_phy: 2184913',
    '     link_down_events_phy: 37',
    ...port.slice(6),
    ...sent,
    ...lanes,
  ].join('\n')}\n`
}

/** The packet filter of a machine with its counters: one rule drops nearly everything, one lets a foreign net in. */
export function iptables(): string {
  const roll = dice(4_603)
  const head = ' pkts bytes target     prot opt in     out     source               destination'
  const rule = (target: string, source: string, port: number, note: string, packets?: string): string =>
    `${(packets ?? String(roll(90_000))).padStart(5)} ${`${roll(900)}K`.padStart(5)} ${target.padEnd(10)} tcp  --  eth0   *       ${source.padEnd(20)} 0.0.0.0/0            tcp dpt:${port} /* ${note} */`
  const chain = (name: string, policy: string, rules: readonly string[]): string[] => [
    `Chain ${name} (${policy})`,
    head,
    ...rules,
    '',
  ]
  const ports = [22, 80, 443, 5_432, 6_379, 8_080, 8_443, 9_090, 9_100, 9_200] as const
  const services = lines(46, (i) => {
    if (i === 20) return rule('DROP', '10.12.0.0/16', 5_671, 'NET-412 until the move is over', '8812K')
    if (i === 30) return rule('ACCEPT', '198.18.0.0/15', 3_306, 'old office')
    return rule(
      roll(8) === 0 ? 'DROP' : 'ACCEPT',
      `10.${roll(60)}.${roll(200)}.0/24`,
      pick(roll, ports),
      `${pick(roll, ['shop', 'ledger', 'search', 'metrics'])} ${i}`,
    )
  })
  return `${[
    ...chain('INPUT', 'policy DROP 1204 packets, 71K bytes', services),
    ...chain(
      'FORWARD',
      'policy ACCEPT 0 packets, 0 bytes',
      lines(16, (i) => rule('ACCEPT', `172.${17 + i}.0.0/16`, 443, `bridge ${i}`)),
    ),
    ...chain(
      'OUTPUT',
      'policy ACCEPT 91M packets, 41G bytes',
      lines(12, (i) => rule('ACCEPT', '0.0.0.0/0', pick(roll, ports), `out ${i}`)),
    ),
  ].join('\n')}\n`
}

/** auth.log: the usual guesses from outside, between them one password of root that was right, and what came of it. */
export function authLog(): string {
  const roll = dice(4_604)
  const say = (i: number, what: string): string => `Nov 16 ${clock(i * 9, 1)} edge-3 ${what}`
  const rows = lines(190, (i) => {
    const session = 20_000 + i * 3
    if (i === 92) return say(i, `sshd[${session}]: Accepted password for backup from 203.0.113.88 port 41022 ssh2`)
    if (i === 94)
      return say(
        i,
        'sudo:   backup : TTY=pts/2 ; PWD=/home/backup ; USER=root ; COMMAND=/usr/bin/tee /etc/sudoers.d/zz-tmp',
      )
    if (i === 97)
      return say(
        i,
        `useradd[${session}]: new user: name=svc-agent, UID=0, GID=0, home=/var/tmp/.svc, shell=/bin/bash, from=/dev/pts/2`,
      )
    if (i === 120)
      return say(
        i,
        `sudo: pam_unix(sudo:auth): authentication failure; logname=mtanaka uid=1007 euid=0 tty=/dev/pts/4 ruser=mtanaka rhost= user=mtanaka`,
      )
    if (i === 141) return say(i, `sshd[${session}]: fatal: Timeout before authentication for 10.4.0.9 port 53110`)
    const guess = `45.${roll(200)}.${roll(200)}.${roll(200)}`
    if (roll(3) === 0)
      return say(
        i,
        `sshd[${session}]: Invalid user ${pick(roll, ['admin', 'test', 'oracle', 'ubuntu', 'git'])} from ${guess} port ${30_000 + roll(30_000)}`,
      )
    if (roll(2) === 0)
      return say(
        i,
        `sshd[${session}]: Failed password for invalid user ${pick(roll, ['admin', 'test', 'pi'])} from ${guess} port ${30_000 + roll(30_000)} ssh2`,
      )
    if (roll(2) === 0)
      return say(i, `CRON[${session}]: pam_unix(cron:session): session opened for user root(uid=0) by (uid=0)`)
    return say(
      i,
      `sshd[${session}]: Accepted publickey for deploy from 10.4.0.${roll(200)} port ${30_000 + roll(30_000)} ssh2: ED25519 SHA256:${hex(roll, 43)}`,
    )
  })
  return `${rows.join('\n')}\n`
}

/** sacct of a day: jobs that are done, one without memory, one on a node that died, one that ran for days. */
export function sacct(): string {
  const roll = dice(4_605)
  const row = (cells: readonly string[]): string =>
    cells.map((cell, i) => cell.padStart([12, 26, 10, 16, 9, 12, 11, 14][i] ?? 10)).join(' ')
  const rows = lines(128, (i) => {
    const id = String(771_200 + i)
    const name = `${pick(roll, ['align', 'fold', 'grid', 'render', 'fit'])}-${pick(roll, ['north', 'south', 'coast', 'alps'])}-${i}`
    const memory = `${2 + roll(28)}.${roll(9)}G`
    const node = `cn-${two(1 + roll(40), 3)}`
    if (i === 47) return row([id, name, 'bigmem', 'OUT_OF_MEMORY', '0:125', '02:11:40', '509.7G', 'cn-207'])
    if (i === 70) return row([id, name, 'batch', 'NODE_FAIL', '1:0', '00:48:02', memory, 'cn-133'])
    if (i === 86) return row([id, name, 'batch', 'COMPLETED', '0:0', '6-03:58:21', memory, node])
    return row([id, name, 'batch', 'COMPLETED', '0:0', `0${roll(5)}:${two(roll(60))}:${two(roll(60))}`, memory, node])
  })
  const head = ['JobID', 'JobName', 'Partition', 'State', 'ExitCode', 'Elapsed', 'MaxRSS', 'NodeList']
  return `${[row(head), row(head.map((_, i) => '-'.repeat([12, 26, 10, 16, 9, 12, 11, 14][i] ?? 10))), ...rows].join('\n')}\n`
}
