// Generators of data files and answers of interfaces, for the outputs in unseen.ts.
import { clock, dice, hex, lines, NOUNS, pick, type Dice, two, VERBS } from './held-out-dice.ts'

/** Readings of meters as CSV: one goes backwards, one is in another unit, one was estimated. */
export function metersCsv(): string {
  const roll = dice(761)
  const rows = lines(330, (i) => {
    const meter = `M-${40_118 + i * 7}`
    const from = 10_000 + roll(40_000)
    const used = 120 + roll(400)
    const way = i === 143 ? 'estimated' : 'remote'
    const unit = i === 88 ? 'MWh' : 'kWh'
    const to = i === 214 ? from - 8_112 : from + used
    return `${meter};2026-10-31T23:45:00Z;${from};${to};${to - from};${unit};${way};${pick(roll, ['Kiel', 'Husum', 'Flensburg'])}`
  })
  return `${['meter;read_at;from;to;used;unit;way;town', ...rows].join('\n')}\n`
}

/** Variants of three samples as VCF: few do not pass the filters, one is marked by a database of diseases. */
export function variantsVcf(): string {
  const roll = dice(762)
  const bases = ['A', 'C', 'G', 'T'] as const
  const sample = (): string => `${pick(roll, ['0/0', '0/1', '0/0'])}:${20 + roll(30)}:${90 + roll(9)}`
  const rows = lines(220, (i) => {
    const chromosome = `chr${1 + Math.floor(i / 10)}`
    const position = 1_000_000 + i * 48_211 + roll(900)
    const change = `${pick(roll, bases)}\t${pick(roll, bases)}`
    const usual = `AC=1;AF=0.167;AN=6;DP=${60 + roll(60)};MQ=60.00`
    if (i === 57)
      return `${chromosome}\t${position}\trs80357906\tC\tT\t812.4\tPASS\t${usual};CLNSIG=Pathogenic\tGT:DP:GQ\t0/1:41:99\t0/0:38:99\t0/1:44:99`
    if (i === 121)
      return `${chromosome}\t${position}\t.\t${change}\t31.2\tstrand_bias;low_depth\tAC=1;AF=0.167;AN=6;DP=9;MQ=31.40\tGT:DP:GQ\t0/1:3:12\t0/0:4:12\t0/0:2:6`
    if (i === 168)
      return `${chromosome}\t${position}\t.\t${change}\t${200 + roll(900)}.${roll(9)}\tPASS\t${usual}\tGT:DP:GQ\t1/1:40:99\t0/0:37:99\t0/0:39:99`
    return `${chromosome}\t${position}\trs${10_000_000 + roll(9_000_000)}\t${change}\t${200 + roll(900)}.${roll(9)}\tPASS\t${usual}\tGT:DP:GQ\t${sample()}\t${sample()}\t${sample()}`
  })
  return `${[
    '##fileformat=VCFv4.2',
    '##fileDate=20261114',
    '##FILTER=<ID=PASS,Description="All filters passed">',
    '##FILTER=<ID=low_depth,Description="Depth below 10">',
    '##INFO=<ID=DP,Number=1,Type=Integer,Description="Total depth">',
    '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">',
    '#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tchild\tmother\tfather',
    ...rows,
  ].join('\n')}\n`
}

/** The values of a chart with two dozen services: one has no copies, one speaks without encryption, one image is of a person. */
export function valuesYaml(): string {
  const roll = dice(763)
  const services = lines(26, (i) => {
    const name = i === 17 ? 'quotes' : `${pick(roll, NOUNS).toLowerCase()}-${pick(roll, VERBS)}-${i}`
    return [
      `  ${name}:`,
      `    replicas: ${i === 8 ? 0 : 2 + roll(3)}`,
      '    image:',
      `      repository: ${i === 13 ? 'ghcr.io/hvogel/shop-debug' : `registry.example/shop/${name}`}`,
      `      tag: "1.${roll(30)}.${roll(9)}"`,
      '      pullPolicy: IfNotPresent',
      '    resources:',
      '      requests: { cpu: 100m, memory: 256Mi }',
      `      limits: { cpu: "${1 + roll(2)}", memory: ${i === 21 ? '64Gi' : '512Mi'} }`,
      '    env:',
      `      LOG_LEVEL: info`,
      `      DATABASE_URL: postgres://${name}@db.shop.svc:5432/${name.replaceAll('-', '_')}?sslmode=${i === 17 ? 'disable' : 'verify-full'}`,
      `      TIMEOUT_MS: "${i === 4 ? 300_000 : 3_000}"`,
      '    probes:',
      '      liveness: { path: /healthz, periodSeconds: 10 }',
      '      readiness: { path: /readyz, periodSeconds: 5 }',
    ]
  })
  return `${['# Values of the chart "shop", environment prod', 'global:', '  domain: shop.example', '  region: eu-3', 'services:', ...services].join('\n')}\n`
}

/** A statement of an account as camt.053: one entry is turned back, one is in another currency, one is not booked yet. */
export function camtXml(): string {
  const roll = dice(764)
  const entry = (i: number): readonly string[] => [
    '      <Ntry>',
    `        <NtryRef>${two(i + 1, 4)}</NtryRef>`,
    `        <Amt Ccy="${i === 24 ? 'CHF' : 'EUR'}">${10 + roll(900)}.${two(roll(99))}</Amt>`,
    `        <CdtDbtInd>${pick(roll, ['CRDT', 'CRDT', 'DBIT'])}</CdtDbtInd>`,
    ...(i === 15 ? ['        <RvslInd>true</RvslInd>'] : []),
    `        <Sts><Cd>${i === 33 ? 'PDNG' : 'BOOK'}</Cd></Sts>`,
    '        <BookgDt><Dt>2026-11-13</Dt></BookgDt>',
    '        <NtryDtls><TxDtls>',
    `          <Refs><EndToEndId>R-${30_171 + i * 13}</EndToEndId></Refs>`,
    `          <RmtInf><Ustrd>${i === 15 ? 'AC04 account closed, R-29844' : `Invoice ${48_000 + i} ${pick(roll, NOUNS)}`}</Ustrd></RmtInf>`,
    '        </TxDtls></NtryDtls>',
    '      </Ntry>',
  ]
  return `${[
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08">',
    '  <BkToCstmrStmt>',
    '    <Stmt>',
    '      <Id>2026-11-13-DE02</Id>',
    '      <Acct><Id><IBAN>DE02120300000000202051</IBAN></Id></Acct>',
    '      <Bal><Tp><CdOrPrtry><Cd>OPBD</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">18244.50</Amt></Bal>',
    ...lines(44, entry),
    '      <Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">-1120.07</Amt></Bal>',
    '    </Stmt>',
    '  </BkToCstmrStmt>',
    '</Document>',
  ].join('\n')}\n`
}

/** What a browser loaded, as HAR: one request waited for long, one broke off, one came from another address. */
export function pageHar(): string {
  const roll = dice(765)
  const entries = Array.from({ length: 48 }, (_, i) => ({
    startedDateTime: `2026-11-14T${clock(Math.floor(i / 8), 2)}.${two(roll(999), 3)}Z`,
    time: i === 19 ? 18_402.118 : 20 + roll(200),
    request: {
      method: 'GET',
      url:
        i === 19
          ? 'https://shop.example/api/offers?depot=HAM-2'
          : `https://cdn.example/assets/${pick(roll, VERBS)}.${hex(roll, 8)}.js`,
      httpVersion: 'h2',
      headersSize: -1,
      bodySize: 0,
    },
    response: {
      status: i === 33 ? 0 : 200,
      statusText: '',
      content: { size: i === 33 ? 0 : 2_000 + roll(40_000), mimeType: i === 33 ? 'x-unknown' : 'text/javascript' },
      redirectURL: '',
      ...(i === 33 ? { _error: 'net::ERR_HTTP2_PROTOCOL_ERROR' } : {}),
    },
    cache: {},
    timings: {
      blocked: roll(9),
      dns: -1,
      connect: -1,
      send: 0,
      wait: i === 19 ? 18_377 : 10 + roll(100),
      receive: roll(30),
    },
    serverIPAddress: i === 40 ? '198.51.100.9' : '203.0.113.20',
  }))
  return `${JSON.stringify({ log: { version: '1.2', creator: { name: 'WebInspector', version: '537.36' }, pages: [], entries } }, null, 1)}\n`
}

/** A page of a search in an issue tracker: one is a blocker, one has nobody, one is due years ago. */
export function jiraSearch(): string {
  const roll = dice(766)
  const person = (): { readonly displayName: string; readonly active: boolean } => ({
    displayName: pick(roll, ['Eva Lind', 'Hanno Vogel', 'Mira Sato', 'Jon Berg']),
    active: true,
  })
  const issues = Array.from({ length: 46 }, (_, i) => ({
    id: String(81_200 + i),
    key: `SHOP-${4_100 + i}`,
    self: `https://jira.example/rest/api/2/issue/${81_200 + i}`,
    fields: {
      summary:
        i === 28
          ? 'Night surcharge is charged twice after a retry'
          : `To ${pick(roll, VERBS)} the ${pick(roll, NOUNS).toLowerCase()} of depot ${i}`,
      status: { name: i === 35 ? 'Waiting for legal' : pick(roll, ['Open', 'In Progress', 'Done']) },
      priority: { name: i === 28 ? 'Blocker' : pick(roll, ['Medium', 'Low']) },
      assignee: person(),
      duedate: i === 11 ? '2019-03-31' : `2026-12-${two(1 + roll(28))}`,
      labels: [pick(roll, NOUNS).toLowerCase()],
      created: `2026-1${roll(2)}-${two(1 + roll(28))}T09:${two(roll(60))}:00.000+0100`,
      timespent: i === 20 ? 1_555_200 : roll(9) * 3_600,
    },
  }))
  return `${JSON.stringify({ expand: 'schema,names', startAt: 0, maxResults: 50, total: issues.length, issues })}\n`
}

function audited(roll: Dice, i: number): unknown {
  const odd = i === 41
  const usual = pick(roll, ['configmaps', 'pods', 'endpointslices', 'leases'])
  return {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: `${hex(roll, 8)}-${hex(roll, 4)}`,
    stage: 'ResponseComplete',
    requestURI: odd
      ? '/api/v1/namespaces/shop/secrets/stripe-live'
      : `/api/v1/namespaces/shop/${usual}/${pick(roll, NOUNS).toLowerCase()}-${i}`,
    verb: i === 63 ? 'deletecollection' : pick(roll, ['get', 'list', 'watch', 'update']),
    user: { username: odd ? 'system:anonymous' : `system:serviceaccount:shop:${pick(roll, VERBS)}er` },
    sourceIPs: [i === 63 ? '192.0.2.200' : `10.244.${roll(9)}.${roll(250)}`],
    userAgent: i === 17 ? 'kubectl/v1.11.0 (windows/amd64)' : 'kube-controller/v1.30.5 (linux/amd64)',
    responseStatus:
      i === 30
        ? {
            code: 403,
            status: 'Failure',
            reason: 'Forbidden',
            message: 'User "hvogel" cannot patch resource "deployments" in the namespace "shop"',
          }
        : { code: 200 },
    requestReceivedTimestamp: `2026-11-14T${clock(i * 3, 2)}.${two(roll(999_999), 6)}Z`,
    annotations: { 'authorization.k8s.io/decision': 'allow' },
  }
}

/** The audit of a cluster as JSON lines: an anonymous reading of a secret, a deletion of many, an old client, a refusal. */
export function auditJsonl(): string {
  const roll = dice(767)
  return `${lines(80, (i) => JSON.stringify(audited(roll, i))).join('\n')}\n`
}
