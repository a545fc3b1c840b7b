// Generators of what clients and servers of databases and web servers print, for the outputs in unseen.ts.
import { clock, dice, hex, lines, NOUNS, pick, type Dice, two, VERBS } from './held-out-dice.ts'

function digestItem(roll: Dice, n: number): readonly string[] {
  const table = `${pick(roll, NOUNS).toLowerCase()}s`
  const odd = n === 8
  const number = (low: number, spread: number): string => `${low + roll(spread)}`
  return [
    `# Query ${n}: ${odd ? '0.02' : `${1 + roll(9)}.${two(roll(99))}`} QPS, ${odd ? '1.91' : `0.${two(roll(99))}`}x concurrency, ID 0x${hex(roll, 32).toUpperCase()} at byte ${roll(90_000_000)}`,
    `# This item is included in the report because it matches --limit.`,
    `# Scores: V/M = ${odd ? '41.72' : `0.${two(roll(60))}`}`,
    '# Time range: 2026-11-13T00:00:02 to 2026-11-13T23:59:58',
    '# Attribute    pct   total     min     max     avg     95%  stddev  median',
    '# ============ === ======= ======= ======= ======= ======= ======= =======',
    `# Count          ${1 + roll(9)}   ${number(1_000, 8_000)}`,
    `# Exec time      ${1 + roll(9)}   ${number(100, 400)}s     1ms   ${number(100, 800)}ms    ${number(10, 30)}ms   ${number(40, 50)}ms    ${number(9, 9)}ms    ${number(9, 9)}ms`,
    `# Lock time      ${roll(4)}    ${number(10, 80)}ms       0   ${number(1, 8)}ms    ${number(10, 80)}us   ${number(100, 99)}us    ${number(10, 80)}us    ${number(10, 80)}us`,
    `# Rows sent      ${roll(9)}  ${number(10, 80)}.${roll(9)}k       0     ${number(50, 50)}   ${number(1, 9)}.91   ${number(10, 20)}.31   ${number(1, 9)}.11    ${number(1, 9)}.96`,
    odd
      ? '# Rows examine  88  48.21G   1.02M  31.40M  28.11M  31.17M   2.04M  28.76M'
      : `# Rows examine   ${roll(9)} ${number(100, 800)}.${two(roll(99))}k       0     ${number(200, 400)}  ${number(10, 80)}.02   ${number(100, 80)}.3   ${number(10, 80)}.6   ${number(10, 80)}.2`,
    '# String:',
    '# Databases    shop',
    `# Hosts        ${odd ? 'report-old-2' : `app-${1 + roll(8)}`}`,
    `# Users        ${odd ? 'nightly' : 'shop'}`,
    '# Query_time distribution',
    `#   1us`,
    `#  10us`,
    `# 100us  ${'#'.repeat(1 + roll(20))}`,
    `#   1ms  ${'#'.repeat(20 + roll(40))}`,
    `#  10ms  ${'#'.repeat(1 + roll(20))}`,
    `# 100ms  ${'#'.repeat(roll(5))}`,
    '# Tables',
    `#    SHOW TABLE STATUS FROM \`shop\` LIKE '${table}'\\G`,
    odd
      ? `SELECT c.id, c.email FROM customers c WHERE LOWER(TRIM(c.email)) = 'eva@shop.example' ORDER BY c.created_at DESC\\G`
      : `SELECT * FROM ${table} WHERE ${pick(roll, VERBS)}_id = ${roll(90_000)} LIMIT ${10 + roll(90)}\\G`,
    '',
  ]
}

/** The digest of a slow log of MySQL: one of the last queries of the ranking reads almost all rows. */
export function queryDigest(): string {
  const roll = dice(731)
  const profile = lines(15, (i) =>
    i === 7
      ? '#    8 0x7C1AE09B55D2F3A1...  524.8112  9.0%    12   43.7343 41.72 SELECT customers'
      : `#   ${String(i + 1).padStart(2)} 0x${hex(roll, 16).toUpperCase()}...  ${900 - i * 50}.${two(roll(99), 4)}  ${(16 - i).toFixed(1)}% ${String(1_000 + roll(8_000)).padStart(5)}    0.${two(roll(99), 4)}  0.${two(roll(60))} SELECT ${pick(roll, NOUNS).toLowerCase()}s`,
  )
  return `${[
    'Pipeline process 5 (iterate) caused an error: Invalid --since value: 2026-11-31 at /usr/bin/pt-query-digest line 14211, <> chunk 918.',
    '',
    '# 41.2s user time, 310ms system time, 58.11M rss, 130.02M vsz',
    '# Current date: Sat Nov 14 06:10:00 2026',
    '# Hostname: db-1',
    '# Files: /var/lib/mysql/db-1-slow.log',
    '# Overall: 88.12k total, 15 unique, 1.02 QPS, 0.12x concurrency ________',
    '',
    '# Profile',
    '# Rank Query ID               Response time Calls R/Call   V/M   Item',
    '# ==== ====================== ============= ===== ======== ===== ==========',
    ...profile,
    '',
    ...lines(15, (i) => digestItem(roll, i + 1)),
  ].join('\n')}\n`
}

/** The plan of a query over shards, as mongosh prints it: one of the shards has no index, one gave up. */
export function mongoExplain(): string {
  const roll = dice(732)
  const shards = lines(16, (i) => {
    const odd = i === 9
    const returned = 40 + roll(90)
    return [
      '        {',
      `          shardName: 'rs-eu-${i + 1}',`,
      `          executionSuccess: ${i !== 12},`,
      ...(i === 12 ? ["          errorMessage: 'operation exceeded time limit',", '          errorCode: 50,'] : []),
      `          nReturned: ${returned},`,
      `          executionTimeMillis: ${odd ? 48_211 : 3 + roll(9)},`,
      `          totalKeysExamined: ${odd ? 0 : returned},`,
      `          totalDocsExamined: ${odd ? 18_220_417 : returned},`,
      '          executionStages: {',
      `            stage: 'SHARDING_FILTER',`,
      `            nReturned: ${returned},`,
      `            works: ${returned + 1},`,
      `            chunkSkips: ${i === 4 ? 1_902 : 0},`,
      '            inputStage: {',
      ...(odd
        ? [
            "              stage: 'COLLSCAN',",
            "              filter: { depot: { '$eq': 'HAM-2' } },",
            "              direction: 'forward',",
          ]
        : [
            "              stage: 'FETCH',",
            '              alreadyHasObj: 0,',
            '              inputStage: {',
            "                stage: 'IXSCAN',",
            "                indexName: 'depot_1_dueAt_-1',",
            '                keyPattern: { depot: 1, dueAt: -1 },',
            `                indexBounds: { depot: [ '["HAM-2", "HAM-2"]' ], dueAt: [ '[MaxKey, MinKey]' ] },`,
            `                seeks: ${1 + roll(3)},`,
            '                dupsTested: 0',
            '              }',
          ]),
      '            }',
      '          }',
      `        }${i === 15 ? '' : ','}`,
    ]
  })
  return `${[
    '{',
    "  explainVersion: '1',",
    '  queryPlanner: { mongosPlannerVersion: 1 },',
    '  executionStats: {',
    '    nReturned: 1391,',
    '    executionTimeMillis: 48230,',
    '    executionStages: {',
    "      stage: 'SHARD_MERGE_SORT',",
    '      shards: [',
    ...shards,
    '      ]',
    '    }',
    '  },',
    "  serverInfo: { host: 'mongos-2', port: 27017, version: '7.0.15' },",
    "  command: { find: 'parcels', filter: { depot: 'HAM-2' }, sort: { dueAt: -1 }, '$db': 'shop' },",
    '  ok: 1',
    '}',
  ].join('\n')}\n`
}

/** The error log of SQL Server: many failed logins as on each day; a setting was changed, a log is full, a disk is slow. */
export function sqlServerLog(): string {
  const roll = dice(733)
  return `${lines(150, (i) => {
    const at = `2026-11-13 ${clock(i * 410, 1)}.${two(roll(99))}`
    const spid = `spid${50 + roll(90)}`.padEnd(12)
    if (i === 48)
      return `${at} ${spid}Configuration option 'max server memory (MB)' changed from 57344 to 2048. Run the RECONFIGURE statement to install.`
    if (i === 80)
      return `${at} ${spid}SQL Server has encountered 214 occurrence(s) of I/O requests taking longer than 15 seconds to complete on file [F:\\Data\\Dispatch_2.ndf] in database id 7.  The OS file handle is 0x0000000000000E48.`
    if (i === 112)
      return [
        `${at} ${spid}Error: 9002, Severity: 17, State: 4.`,
        `${at} ${spid}The transaction log for database 'Dispatch' is full due to 'REPLICATION'.`,
      ]
    if (i % 5 === 2)
      return [
        `${at} Logon       Error: 18456, Severity: 14, State: 8.`,
        `${at} Logon       Login failed for user 'scanner'. Reason: Password did not match that for the login provided. [CLIENT: 10.3.0.${1 + roll(250)}]`,
      ]
    if (i % 11 === 6)
      return `${at} ${spid}DBCC CHECKDB (${pick(roll, NOUNS)}) WITH no_infomsgs executed by sa found 0 errors and repaired 0 errors. Elapsed time: 0 hours ${roll(9)} minutes ${roll(60)} seconds.`
    return `${at} Backup      Log was backed up. Database: ${pick(roll, NOUNS)}, creation date(time): 2024/02/11(10:02:11), first LSN: ${8_000 + i}:${roll(900)}:1, last LSN: ${8_001 + i}:${roll(900)}:1, number of dump devices: 1. This is an informational message only. No user action is required.`
  }).join('\n')}\n`
}

/** The access log of Apache with the time of each request: usual misses; one very large answer, one long one, one unusual client. */
export function apacheAccess(): string {
  const roll = dice(734)
  const agents = [
    'Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0',
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15',
    'kube-probe/1.30',
  ] as const
  return `${lines(196, (i) => {
    const at = `[14/Nov/2026:${clock(i * 2, 2)} +0100]`
    const from = `10.9.${roll(9)}.${1 + roll(250)}`
    const agent = pick(roll, agents)
    if (i === 63)
      return `${from} - hvogel ${at} "GET /admin/export?table=customers&from=1970-01-01 HTTP/1.1" 200 918244112 "-" "curl/8.5.0" 48211904`
    if (i === 107) return `203.0.113.77 - - ${at} "POST /login HTTP/1.1" 302 211 "-" "python-requests/2.9.1" 8120`
    if (i === 141) return `${from} - - ${at} "PUT /stock/HAM-2/batch HTTP/1.1" 507 318 "-" "${agent}" 30211`
    if (i % 9 === 3)
      return `${from} - - ${at} "GET /favicon-${roll(40)}.png HTTP/1.1" 404 196 "-" "${agent}" ${200 + roll(400)}`
    return `${from} - - ${at} "GET /${pick(roll, NOUNS).toLowerCase()}/${roll(9_000)} HTTP/1.1" ${pick(roll, ['200', '200', '200', '304'])} ${900 + roll(9_000)} "https://shop.example/" "${agent}" ${2_000 + roll(40_000)}`
  }).join('\n')}\n`
}

/** The transactions of Varnish, grouped: one fetch broke off, one answer is kept for no time because it sets a cookie. */
export function varnishlog(): string {
  const roll = dice(735)
  return `${lines(34, (i) => {
    const id = 32_770 + i * 3
    const at = (after: number): string =>
      `${1_794_621_064 + i}.${two(roll(999_999), 6)} ${after.toFixed(6)} ${after.toFixed(6)}`
    const url = i === 14 ? '/api/offers?depot=HAM-2' : `/${pick(roll, NOUNS).toLowerCase()}/${roll(9_000)}`
    const kind = i === 14 || i === 23 ? 'MISS' : pick(roll, ['HIT', 'HIT', 'MISS'])
    return [
      `*   << Request  >> ${id}     `,
      `-   Begin          req ${id - 1} rxreq`,
      `-   Timestamp      Start: ${at(0)}`,
      `-   ReqStart       10.9.${roll(9)}.${roll(250)} ${30_000 + roll(30_000)} a0`,
      '-   ReqMethod      GET',
      `-   ReqURL         ${url}`,
      '-   ReqHeader      Host: shop.example',
      `-   ReqHeader      X-Request-Id: ${hex(roll, 16)}`,
      '-   VCL_call       RECV',
      '-   VCL_return     hash',
      `-   VCL_call       ${kind}`,
      ...(i === 14
        ? [
            '--  BereqURL       /api/offers?depot=HAM-2',
            `--  Timestamp      Bereq: ${at(0.000_211)}`,
            '--  BackendOpen    31 offers-b 10.9.4.12 8080 10.9.0.2 41922 connect',
            '--  FetchError     http first read error: EOF',
            '--  BackendClose   31 offers-b close RX_BAD',
          ]
        : []),
      ...(i === 23
        ? ['--  BerespHeader   Set-Cookie: basket=; Max-Age=0', '--  TTL            VCL 0 10 0 1794621087 uncacheable']
        : []),
      ...(kind === 'MISS' && i !== 14 && i !== 23
        ? [`--  TTL            RFC 120 10 0 ${1_794_621_064 + i} cacheable`]
        : []),
      `-   RespStatus     ${i === 14 ? 503 : 200}`,
      `-   Timestamp      Resp: ${at(i === 28 ? 18.402_177 : roll(900) / 100_000)}`,
      `-   ReqAcct        ${200 + roll(90)} 0 ${200 + roll(90)} 412 ${900 + roll(9_000)} ${2_000 + roll(9_000)}`,
      '-   End',
      '',
    ]
  }).join('\n')}\n`
}
