// Generators of what command lines of clouds and clusters print, for the outputs in unseen.ts.
import { clock, dice, lines, NOUNS, pick, two, VERBS } from './held-out-dice.ts'

/** The machines of a project: one is stopped, one database has a public address, one is on another continent, one zone did not answer. */
export function gcloudInstances(): string {
  const roll = dice(721)
  const row = (
    name: string,
    zone: string,
    type: string,
    spot: string,
    inner: string,
    outer: string,
    state: string,
  ): string =>
    `${name.padEnd(26)}${zone.padEnd(18)}${type.padEnd(18)}${spot.padEnd(13)}${inner.padEnd(15)}${outer.padEnd(17)}${state}`
  const rows = lines(132, (i) => {
    const kind = pick(roll, ['web', 'api', 'db', 'cache', 'batch'])
    const zone = `europe-west3-${pick(roll, ['a', 'b', 'c'])}`
    const inner = `10.156.${Math.floor(i / 60)}.${2 + (i % 60) * 4}`
    if (i === 37) return row('db-ledger-2', zone, 'n2-highmem-8', '', inner, '34.89.201.17', 'RUNNING')
    if (i === 70) return row('batch-tiles-9', 'us-central1-f', 'n2-standard-4', '', inner, '', 'RUNNING')
    if (i === 111) return row('cache-quote-3', zone, 'n2-standard-4', '', inner, '', 'TERMINATED')
    const spot = kind === 'batch' ? 'true' : ''
    return row(
      `${kind}-${pick(roll, NOUNS).toLowerCase()}-${i}`,
      zone,
      `n2-standard-${pick(roll, ['2', '4', '8'])}`,
      spot,
      inner,
      '',
      'RUNNING',
    )
  })
  const head = row('NAME', 'ZONE', 'MACHINE_TYPE', 'PREEMPTIBLE', 'INTERNAL_IP', 'EXTERNAL_IP', 'STATUS')
  const warning = [
    'WARNING: Some requests did not succeed.',
    " - Backend Error: zone 'europe-west3-d' did not answer in 60s",
  ]
  return `${[...warning, '', head, ...rows].join('\n')}\n`
}

/** The rules of a network security group: one opens the remote desktop to everyone, one is before all others, one goes outside. */
export function azureRules(): string {
  const roll = dice(722)
  const widths = [34, 16, 10, 18, 24, 8, 10, 11, 23, 27] as const
  const row = (...cells: readonly string[]): string => cells.map((cell, i) => cell.padEnd(widths[i] ?? 10)).join('')
  const rule = (name: string, priority: number, from: string, access: string, port: string, to: string): string =>
    row(
      name,
      'shop-prod-rg',
      String(priority),
      '*',
      from,
      access,
      'Tcp',
      to === 'Internet' ? 'Outbound' : 'Inbound',
      port,
      to,
    )
  const head =
    'Name ResourceGroup Priority SourcePortRanges SourceAddressPrefixes Access Protocol Direction DestinationPortRanges DestinationAddressPrefixes'
  const rules = lines(84, (i) => {
    const priority = 200 + i * 20
    if (i === 33) return rule('tmp-vendor-rdp', priority, '*', 'Allow', '3389', '10.20.4.0/24')
    if (i === 58) return rule('block-replica', 105, '10.20.7.0/24', 'Deny', '5432', '10.20.9.11')
    if (i === 71) return rule('egress-mail-old', priority, '10.20.3.0/24', 'Allow', '25', 'Internet')
    const name = `allow-${pick(roll, NOUNS).toLowerCase()}-${pick(roll, VERBS)}-${i}`
    const port = pick(roll, ['443', '8443', '9090', '5432', '6379'])
    return rule(name, priority, `10.20.${roll(30)}.0/24`, 'Allow', port, `10.20.${roll(30)}.${1 + roll(250)}`)
  })
  const names = head.split(' ')
  return `${[row(...names), row(...names.map((_, i) => '-'.repeat((widths[i] ?? 10) - 2))), ...rules].join('\n')}\n`
}

/** The health and the disks of a cluster of Ceph: a disk is down, one is nearly full, one is weighted by hand, one group differs. */
export function ceph(): string {
  const roll = dice(723)
  const tree = lines(12, (host) => [
    ` ${String(-3 - host * 2).padStart(3)}         43.66000         -   44 TiB   ${20 + roll(5)} TiB   ${20 + roll(5)} TiB  ${10 + roll(40)} MiB  ${50 + roll(9)} GiB   ${20 + roll(3)} TiB  ${52 + roll(6)}.${two(roll(99))}  1.00    -              host stor-${two(host + 1)}`,
    ...lines(6, (disk) => {
      const id = host * 6 + disk
      const weight = id === 52 ? '0.65001' : '1.00000'
      const used = id === 23 ? '91.47' : `${50 + roll(9)}.${two(roll(99))}`
      const state = id === 37 ? 'down' : 'up'
      return ` ${String(id).padStart(3)}    hdd   7.27739   ${weight}  7.3 TiB  ${3 + roll(2)}.${roll(9)} TiB  ${3 + roll(2)}.${roll(9)} TiB  ${roll(9)} MiB  ${8 + roll(3)} GiB  ${2 + roll(2)}.${roll(9)} TiB  ${used}  ${id === 23 ? '1.66' : '1.00'}  ${String(60 + roll(30)).padStart(3)}  ${state.padStart(6)}          osd.${id}`
    }),
  ])
  return `${[
    'HEALTH_ERR 1 scrub errors; Possible data damage: 1 pg inconsistent; 1 nearfull osd(s); 1 osds down; Degraded data redundancy: 18412/9120331 objects degraded (0.202%), 61 pgs degraded',
    '[ERR] OSD_SCRUB_ERRORS: 1 scrub errors',
    '[ERR] PG_DAMAGED: Possible data damage: 1 pg inconsistent',
    '    pg 4.1a7 is active+clean+inconsistent, acting [12,5,44]',
    '[WRN] OSD_NEARFULL: 1 nearfull osd(s)',
    '    osd.23 is near full',
    '[WRN] OSD_DOWN: 1 osds down',
    '    osd.37 (root=default,host=stor-07) is down',
    '[WRN] PG_DEGRADED: Degraded data redundancy: 18412/9120331 objects degraded (0.202%), 61 pgs degraded',
    ...lines(61, (i) => {
      const state = i === 29 ? 'active+undersized+degraded+remapped+backfill_toofull' : 'active+undersized+degraded'
      return `    pg ${2 + roll(4)}.${(i * 13 + 5).toString(16)} is ${state}, acting [${roll(36)},${38 + roll(34)}]`
    }),
    '',
    'ID   CLASS  WEIGHT    REWEIGHT  SIZE     RAW USE  DATA     OMAP    META    AVAIL    %USE   VAR   PGS  STATUS  TYPE NAME',
    ' -1         523.97180         -  524 TiB  281 TiB  279 TiB  411 MiB  698 GiB  243 TiB  53.63  1.00    -          root default',
    ...tree,
    '                        TOTAL  524 TiB  281 TiB  279 TiB  411 MiB  698 GiB  243 TiB  53.63',
    'MIN/MAX VAR: 0.91/1.66  STDDEV: 4.38',
  ].join('\n')}\n`
}

/** The accounts of a batch cluster: one ran out of memory, one out of time, one node fell away, one took two seconds instead of hours. */
export function sacct(): string {
  const roll = dice(724)
  const row = (...cells: readonly string[]): string => {
    const widths = [14, 12, 11, 10, 12, 9, 12, 12, 16] as const
    return cells.map((cell, i) => cell.padStart(widths[i] ?? 10)).join(' ')
  }
  const jobs = lines(96, (i) => {
    const id = String(918_200 + i * 3)
    const name = pick(roll, ['fold', 'align', 'mesh', 'relax'])
    const node = `cn${two(1 + roll(88), 3)}`
    const usual = `${two(1 + roll(9))}:${two(roll(60))}:${two(roll(60))}`
    const state = i === 31 ? 'OUT_OF_ME+' : i === 66 ? 'NODE_FAIL' : i === 17 ? 'TIMEOUT' : 'COMPLETED'
    const exit = i === 31 ? '0:125' : i === 66 ? '1:0' : '0:0'
    const elapsed = i === 48 ? '00:00:02' : i === 17 ? '12:00:11' : usual
    const memory = `${18_000_000 + roll(6_000_000)}K`
    const partition = i === 80 ? 'debug' : 'long'
    return [
      row(id, name, partition, 'geo-eu', '64', state, exit, elapsed, i === 66 ? 'cn041' : node),
      row(
        `${id}.batch`,
        'batch',
        '',
        'geo-eu',
        '64',
        state === 'NODE_FAIL' || state === 'TIMEOUT' ? 'CANCELLED' : state,
        exit,
        elapsed,
        i === 48 ? '412K' : i === 31 ? '257998412K' : memory,
      ),
    ]
  })
  return `${[
    row('JobID', 'JobName', 'Partition', 'Account', 'AllocCPUS', 'State', 'ExitCode', 'Elapsed', 'NodeList/MaxRSS'),
    row(...Array.from({ length: 9 }, () => '---------')),
    ...jobs,
    `# asked at ${clock(0, 9)}, 96 jobs`,
  ].join('\n')}\n`
}
