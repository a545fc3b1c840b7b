// Generators of what tools of a system, of its network and of its hardware print, for the outputs in unseen.ts.
import { clock, dice, hex, lines, NOUNS, pick, two, VERBS } from './held-out-dice.ts'

/** The open files of a host: a deleted log of 91 GB, a connection to a place outside, one that was never closed. */
export function lsof(): string {
  const roll = dice(741)
  const widths = [-10, 6, 9, 5, 6, 12, 12, 10, -1] as const
  const row = (...cells: readonly string[]): string =>
    cells
      .map((cell, i) => {
        const width = widths[i] ?? 0
        return width < 0 ? cell.padEnd(-width) : cell.padStart(width)
      })
      .join(' ')
  const programs = ['nginx', 'postgres', 'shop-api', 'node_exp', 'rsyslogd']
  const rows = lines(210, (i) => {
    const program = Math.floor(i / 14)
    const command = programs[program % 5] ?? ''
    const opened = [command, String(900 + program * 211), command === 'postgres' ? 'postgres' : 'www-data']
    const file = (fd: string, device: string, size: number, node: number, name: string): string =>
      row(...opened, fd, 'REG', device, String(size), String(node), name)
    const socket = (fd: number, name: string): string =>
      row(...opened, `${fd}u`, 'IPv4', String(2_800_000 + roll(90_000)), '0t0', 'TCP', `10.0.4.7:${name}`)
    if (i === 33) return file('14w', '253,2', 97_710_505_984, 1_441_802, '/var/log/shop/trace.log (deleted)')
    if (i === 77) return socket(31, '39122->203.0.113.77:4444 (ESTABLISHED)')
    if (i === 174) return socket(212, '52210->10.0.9.3:6379 (CLOSE_WAIT)')
    if (i % 3 === 0) return socket(3 + roll(60), `${30_000 + roll(30_000)}->10.0.9.${1 + roll(9)}:5432 (ESTABLISHED)`)
    if (i % 3 === 1) {
      const library = `/usr/lib/x86_64-linux-gnu/lib${pick(roll, VERBS)}.so.${roll(9)}`
      return file('mem', '253,0', 20_000 + roll(900_000), 131_000 + roll(9_000), library)
    }
    const data = `/srv/shop/${pick(roll, NOUNS).toLowerCase()}/${pick(roll, VERBS)}_${i}.dat`
    return file(`${3 + roll(60)}r`, '253,1', 2_000 + roll(90_000), 390_000 + roll(9_000), data)
  })
  return `${[row('COMMAND', 'PID', 'USER', 'FD', 'TYPE', 'DEVICE', 'SIZE/OFF', 'NODE', 'NAME'), ...rows].join('\n')}\n`
}

/** A profile by perf: a symbol that should take nothing takes a third, and its callers are in its graph. */
export function perfReport(): string {
  const roll = dice(742)
  const entry = (share: string, command: string, object: string, symbol: string): string =>
    `    ${share.padStart(6)}  ${command.padEnd(15)}  ${object.padEnd(24)}  ${symbol}`
  const rest = lines(64, (i) => {
    const share = `${(6 - i * 0.09).toFixed(2)}%`
    if (i === 24)
      return [
        entry(share, 'shopd', '[kernel.kallsyms]', '[k] native_queued_spin_lock_slowpath'),
        '            |',
        '             --3.71%--do_futex',
        '                       |',
        '                        --3.70%--TariffTable::Reload',
        '',
      ]
    const symbol = `[.] shop::${pick(roll, NOUNS)}::${pick(roll, VERBS)}_${i}`
    return [
      entry(
        share,
        pick(roll, ['shopd', 'shopd-io']),
        pick(roll, ['shopd', 'libc.so.6', 'libstdc++.so.6.0.33']),
        symbol,
      ),
      '            |',
      `            ---shop::Worker::${pick(roll, VERBS)}`,
      `               shop::Loop::run_${i % 4}`,
      '',
    ]
  })
  return `${[
    'Failed to open /tmp/perf-4118.map, continuing without symbols',
    '# To display the perf.data header info, please use --header/--header-only options.',
    '#',
    '# Total Lost Samples: 41213',
    '#',
    "# Samples: 218K of event 'cycles:P'",
    '# Event count (approx.): 184211020331',
    '#',
    '# Overhead  Command          Shared Object             Symbol',
    '# ........  ...............  ........................  ......................................',
    '#',
    entry('33.18%', 'shopd', 'libstdc++.so.6.0.33', '[.] std::locale::locale(char const*)'),
    '            |',
    '             --33.02%--shop::Price::format',
    '                       shop::Worker::render',
    '                       shop::Loop::run_0',
    '',
    ...rest,
    '',
    '# (Tip: To see callchains in a more compact form: perf report -g folded)',
  ].join('\n')}\n`
}

const ATTRIBUTES = [
  ['1', 'Raw_Read_Error_Rate', 'POSR-K', '200', '200', '051', '0'],
  ['3', 'Spin_Up_Time', 'POS--K', '175', '171', '021', '6225'],
  ['4', 'Start_Stop_Count', '-O--CK', '100', '100', '000', '112'],
  ['5', 'Reallocated_Sector_Ct', 'PO--CK', '200', '200', '140', '0'],
  ['7', 'Seek_Error_Rate', '-OSR-K', '200', '200', '000', '0'],
  ['9', 'Power_On_Hours', '-O--CK', '044', '044', '000', '41211'],
  ['10', 'Spin_Retry_Count', '-O--CK', '100', '100', '000', '0'],
  ['12', 'Power_Cycle_Count', '-O--CK', '100', '100', '000', '112'],
  ['192', 'Power-Off_Retract_Count', '-O--CK', '200', '200', '000', '88'],
  ['193', 'Load_Cycle_Count', '-O--CK', '001', '001', '000', '918244'],
  ['194', 'Temperature_Celsius', '-O---K', '118', '099', '000', '32'],
  ['196', 'Reallocated_Event_Count', '-O--CK', '200', '200', '000', '0'],
  ['197', 'Current_Pending_Sector', '-O--CK', '199', '199', '000', '412'],
  ['198', 'Offline_Uncorrectable', '----CK', '200', '200', '000', '0'],
  ['199', 'UDMA_CRC_Error_Count', '-O--CK', '200', '200', '000', '0'],
] as const

/** All that smartctl knows of a disk: the verdict is good, but sectors are pending and one self-test broke off. */
export function smartctl(): string {
  const roll = dice(743)
  return `${[
    'smartctl 7.4 2023-08-01 r5530 [x86_64-linux-6.8.0-48-generic] (local build)',
    '',
    '=== START OF INFORMATION SECTION ===',
    'Device Model:     WDC WD80EFZZ-68BTXN0',
    'Serial Number:    WD-CA1K9XZP',
    'Firmware Version: 81.00A81',
    'User Capacity:    8,001,563,222,016 bytes [8.00 TB]',
    'SATA Version is:  SATA 3.3, 6.0 Gb/s (current: 1.5 Gb/s)',
    'SMART support is: Enabled',
    '',
    '=== START OF READ SMART DATA SECTION ===',
    'SMART overall-health self-assessment test result: PASSED',
    '',
    'Vendor Specific SMART Attributes with Thresholds:',
    'ID# ATTRIBUTE_NAME          FLAGS    VALUE WORST THRESH FAIL RAW_VALUE',
    ...ATTRIBUTES.map(
      ([id, name, flags, value, worst, limit, raw]) =>
        `${id.padStart(3)} ${name.padEnd(23)} ${flags.padEnd(8)} ${value}   ${worst}   ${limit}    -    ${raw}`,
    ),
    '',
    'SMART Extended Comprehensive Error Log Version: 1 (6 sectors)',
    'Device Error Count: 2',
    ...['41', '40'].flatMap((count, n) => [
      `Error ${count} [${16 - n}] occurred at disk power-on lifetime: ${40_123 - n * 800} hours (${1_671 - n * 33} days + ${19 - n} hours)`,
      '  ER -- ST COUNT  LBA_48  LH LM LL DV DC',
      '  -- -- -- == -- == == == -- -- -- -- --',
      n === 0
        ? '  40 -- 51 00 08 00 00 30 71 8c e4 40 00  Error: UNC 8 sectors at LBA = 0x30718ce4 = 812748004'
        : '  04 -- 61 00 46 00 00 00 00 00 2c a0 00  Device Fault; Error: ABRT',
      '',
    ]),
    'SMART Extended Self-test Log Version: 1 (1 sectors)',
    'Num  Test_Description    Status                  Remaining  LifeTime(hours)  LBA_of_first_error',
    ...lines(18, (i) =>
      i === 7
        ? '# 8  Extended offline    Completed: read failure       60%     40123         812748004'
        : `#${String(i + 1).padStart(2)}  Short offline       Completed without error       00%     ${41_200 - i * 168}         -`,
    ),
    '',
    'SCT Temperature History Version:     2',
    'Index    Estimated Time   Temperature Celsius',
    ...lines(128, (i) => {
      const heat = i === 77 ? 61 : 31 + roll(3)
      return ` ${String(i).padStart(3)}    2026-11-13 ${clock(i * 600, 0).slice(0, 5)}    ${heat}  ${'*'.repeat(heat - 19)}`
    }),
    '',
    'SATA Phy Event Counters (GP Log 0x11)',
    'ID      Size     Value  Description',
    '0x0001  2            0  Command failed due to ICRC error',
    '0x0002  2            0  R_ERR response for data FIS',
    '0x0009  2           41  Transition from drive PhyRdy to drive PhyNRdy',
    '0x000a  2           42  Device-to-host register FISes sent due to a COMRESET',
    '0x8000  4       148312  Vendor specific',
  ].join('\n')}\n`
}

/** The event log of a board: sessions and fans for weeks; a memory row, an open cover, a clock that was set. */
export function ipmiEvents(): string {
  const roll = dice(744)
  return `${lines(190, (i) => {
    const id = (i + 1).toString(16).padStart(4)
    const at = `${two(10 + Math.floor(i / 95))}/${two(1 + Math.floor((i % 95) / 4))}/2026 | ${clock(((i % 95) % 4) * 21_000 + roll(20_000), 0)} CET`
    if (i === 61) return `${id} | ${at} | Physical Security #0x73 | General Chassis intrusion | Asserted`
    if (i === 104) return `${id} | ${at} | Memory #0x53 | Uncorrectable ECC (UnCorrectable ECC |  DIMMB4) | Asserted`
    if (i === 121) return `${id} | ${at} | Power Supply #0x62 | Failure detected | Asserted`
    if (i === 139) return `${id} | 01/01/1970 | 00:00:31 CET | System Event #0x10 | Timestamp Clock Sync | Asserted`
    const way = i % 2 === 0 ? 'Asserted' : 'Deasserted'
    return `${id} | ${at} | ${pick(roll, [
      `Fan #0x4${1 + roll(6)} | Lower Non-critical going low  | ${way} | Reading ${2_100 + roll(300)} < Threshold 2500 RPM`,
      `Temperature #0x30 | Upper Non-critical going high | ${way} | Reading ${38 + roll(3)} > Threshold 37 degrees C`,
      `Session Audit #0xff |  | ${way}`,
    ])}`
  }).join('\n')}\n`
}

/** A scan of a network: one host still speaks telnet, one has an open store, one has a certificate of another year. */
export function nmap(): string {
  const roll = dice(745)
  const hosts = lines(38, (i) => {
    const address = `10.20.4.${5 + i * 6}`
    const name = `${pick(roll, ['scan', 'till', 'gate', 'desk'])}-${i}.depot.example`
    return [
      `Nmap scan report for ${name} (${address})`,
      `Host is up (0.00${10 + roll(80)}s latency).`,
      'Not shown: 996 closed tcp ports (reset)',
      'PORT     STATE    SERVICE      VERSION',
      `22/tcp   open     ssh          ${i === 30 ? 'OpenSSH 5.3 (protocol 2.0)' : 'OpenSSH 9.2p1 Debian 2+deb12u3 (protocol 2.0)'}`,
      ...(i === 11 ? ['23/tcp   open     telnet       Moxa NPort telnetd'] : []),
      '443/tcp  open     ssl/http     nginx 1.26.2',
      ...(i === 22
        ? ['6379/tcp open     redis        Redis key-value store 3.2.1']
        : ['9100/tcp open     http         Prometheus node_exporter']),
      `| ssl-cert: Subject: commonName=${name}`,
      `|_Not valid after:  ${i === 17 ? '2024-02-29T23:59:59' : `2027-0${1 + roll(9)}-11T00:00:00`}`,
      ...(i === 26
        ? [
            '| smb-vuln-ms17-010:',
            '|   VULNERABLE:',
            '|   Remote Code Execution vulnerability in Microsoft SMBv1 servers (ms17-010)',
            '|_    State: VULNERABLE',
          ]
        : []),
      `MAC Address: 52:54:00:${hex(roll, 2)}:${hex(roll, 2)}:${hex(roll, 2)} (QEMU virtual NIC)`,
      '',
    ]
  })
  return `${[
    'Starting Nmap 7.95 ( https://nmap.org ) at 2026-11-14 02:11 CET',
    ...hosts,
    'Service detection performed. Please report any incorrect results at https://nmap.org/submit/ .',
    'Nmap done: 256 IP addresses (38 hosts up) scanned in 214.41 seconds',
  ].join('\n')}\n`
}

/** The rules of a packet filter with counters: one lets everyone to the database, one drops nearly all packets. */
export function iptables(): string {
  const roll = dice(746)
  const rule = (
    n: number,
    packets: string,
    bytes: string,
    target: string,
    from: string,
    to: string,
    more: string,
  ): string =>
    `${String(n).padEnd(5)}${packets.padStart(6)} ${bytes.padStart(6)} ${target.padEnd(11)}tcp  --  *      *       ${from.padEnd(21)}${to.padEnd(21)}${more}`
  const chain = (name: string, count: number, at: (i: number) => string | undefined): readonly string[] => [
    `Chain ${name} (1 references)`,
    'num   pkts  bytes target     prot opt in     out     source               destination',
    ...lines(
      count,
      (i) =>
        at(i) ??
        rule(
          i + 1,
          `${roll(900)}K`,
          `${roll(90)}M`,
          pick(roll, ['ACCEPT', 'ACCEPT', 'RETURN']),
          `10.${20 + roll(4)}.${roll(99)}.0/24`,
          `10.30.${roll(9)}.${roll(250)}`,
          `tcp dpt:${pick(roll, ['443', '8443', '9100', '22'])} ctstate NEW`,
        ),
    ),
    '',
  ]
  return `${[
    'Chain INPUT (policy DROP 41 packets, 2460 bytes)',
    'num   pkts  bytes target     prot opt in     out     source               destination',
    rule(1, '88M', '112G', 'DEPOTS', '0.0.0.0/0', '0.0.0.0/0', ''),
    rule(2, '12M', '8144M', 'OFFICES', '0.0.0.0/0', '0.0.0.0/0', ''),
    '',
    'Chain FORWARD (policy ACCEPT 0 packets, 0 bytes)',
    'num   pkts  bytes target     prot opt in     out     source               destination',
    '',
    ...chain('DEPOTS', 62, (i) => {
      if (i === 28)
        return rule(
          29,
          '4',
          '240',
          'ACCEPT',
          '0.0.0.0/0',
          '10.30.2.11',
          'tcp dpt:5432 ctstate NEW /* TODO remove, hv */',
        )
      return i === 47
        ? rule(48, '7120M', '412G', 'DROP', '10.22.81.0/24', '10.30.5.40', 'tcp dpt:9092 ctstate NEW')
        : undefined
    }),
    ...chain('OFFICES', 40, (i) =>
      i === 21
        ? rule(22, '0', '0', 'REJECT', '10.21.14.0/24', '10.30.1.7', 'tcp dpt:443 reject-with icmp-port-unreachable')
        : undefined,
    ),
  ].join('\n')}\n`
}
