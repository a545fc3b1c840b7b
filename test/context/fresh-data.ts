// Generators of data files and of answers of APIs, for the outputs in fresh.ts.
import { clock, dice, hex, lines, NOUNS, pick, two, VERBS } from './held-out-dice.ts'

/** A count of a warehouse: one line below zero, one of another unit, one counted in 1970, one that nobody could count. */
export function stockCount(): string {
  const roll = dice(4_701)
  const rows = lines(236, (i) => {
    const place = `${pick(roll, ['A', 'B', 'C', 'D'])}-${two(1 + roll(40))}-${1 + roll(6)}`
    const booked = 20 + roll(400)
    const counted = booked + roll(5) - 2
    const id = `SKU-${20_000 + i * 13}`
    const name = `${pick(roll, ['Kettle', 'Lamp', 'Rack', 'Tray', 'Hinge', 'Filter'])} ${pick(roll, ['small', 'large', 'steel', 'white', 'oak'])}`
    const at = `2026-11-14 ${clock(i * 40, 7)}`
    if (i === 97) return `${id},${name},${place},piece,312,-488,${at},kbauer,`
    if (i === 131) return `${id},${name},${place},pallet,${booked},${counted},${at},kbauer,`
    if (i === 160) return `${id},${name},${place},piece,${booked},${counted},1970-01-01 01:00:00,scanner-9,`
    if (i === 199) return `${id},${name},${place},piece,${booked},,${at},wlang,aisle blocked: could not be counted`
    return `${id},${name},${place},piece,${booked},${counted},${at},${pick(roll, ['kbauer', 'wlang', 'mtanaka'])},${roll(12) === 0 ? 'counted twice' : ''}`
  })
  return `${['sku,name,place,unit,booked,counted,counted_at,counted_by,note', ...rows].join('\n')}\n`
}

/** The sheet of a sequencing run: samples that passed, one that did not, one with far too little, one of another plate. */
export function sampleSheet(): string {
  const roll = dice(4_702)
  const rows = lines(168, (i) => {
    const well = `${'ABCDEFGH'[i % 8] ?? 'A'}${two(1 + (Math.floor(i / 8) % 12))}`
    const id = `S26-${two(3_100 + i, 5)}`
    const row = (plate: string, conc: string, reads: number, q30: string, note: string): string =>
      [id, plate, well, conc, String(reads), q30, note].join('\t')
    const conc = `${22 + roll(40)}.${roll(10)}`
    const reads = 21_000_000 + roll(9_000_000)
    const q30 = `${91 + roll(5)}.${roll(10)}`
    if (i === 58) return row('PL-0447', conc, 318_204, '61.3', 'FAIL contamination 18.2% with S26-03157')
    if (i === 92) return row('PL-0447', '0.04', reads, q30, 'PASS')
    if (i === 120) return row('PL-0391', conc, reads, q30, 'PASS')
    return row('PL-0447', conc, reads, q30, roll(14) === 0 ? 'PASS topped up' : 'PASS')
  })
  return `${['sample\tplate\twell\tng_per_ul\treads\tpct_q30\tqc', ...rows].join('\n')}\n`
}

/** An inventory of Ansible: seventy hosts, one of which is reached and run in another way. */
export function inventory(): string {
  const roll = dice(4_703)
  const groups = ['web', 'api', 'db', 'queue', 'edge'] as const
  const body = groups.flatMap((group, g) => [
    `    ${group}:`,
    '      hosts:',
    ...lines(14, (i) => {
      const odd = g === 2 && i === 6
      const slow = g === 3 && i === 4
      return [
        `        ${group}-${two(i + 1)}.fra.internal:`,
        `          ansible_host: 10.30.${g}.${10 + i}`,
        `          rack: r${1 + roll(9)}`,
        `          kernel: 6.8.0-${40 + roll(9)}`,
        ...(odd ? ['          ansible_port: 2201', '          ansible_python_interpreter: /usr/bin/python2.7'] : []),
        ...(slow ? ['          quarantine: true  # disk failed twice, INC-8812'] : []),
        `          weight: ${pick(roll, [10, 10, 20])}`,
      ]
    }),
    '      vars:',
    `        service_port: ${8_000 + g * 10}`,
    `        keep_releases: ${g === 4 ? 0 : 5}`,
  ])
  return `${['all:', '  vars:', '    ansible_user: deploy', '    ansible_python_interpreter: /usr/bin/python3', '    ntp_servers: [10.30.0.1, 10.30.0.2]', '  children:', ...body].join('\n')}\n`
}

/** A lock file of uv: packages of the index, one of a git branch, one of a folder on somebody's machine. */
export function uvLock(): string {
  const roll = dice(4_704)
  const packages = lines(64, (i) => {
    const name = `${pick(roll, ['py', 'lib', 'django', 'async', 'open'])}-${pick(roll, NOUNS).toLowerCase()}-${i}`
    const version = `${roll(6)}.${roll(30)}.${roll(10)}`
    if (i === 29)
      return [
        '[[package]]',
        'name = "tariff-rules"',
        'version = "0.9.1"',
        'source = { git = "https://git.example/forks/tariff-rules.git?branch=wip-rounding#41bd0c79be20" }',
        '',
      ]
    if (i === 41)
      return [
        '[[package]]',
        'name = "pdf-stamp"',
        'version = "2.0.0"',
        'source = { directory = "/home/jonas/src/pdf-stamp" }',
        '',
      ]
    const file = `https://files.pythonhosted.org/packages/${hex(roll, 2)}/${hex(roll, 2)}/${name.replace(/-/g, '_')}-${version}`
    return [
      '[[package]]',
      `name = "${name}"`,
      `version = "${version}"`,
      'source = { registry = "https://index.example/simple" }',
      `sdist = { url = "${file}.tar.gz", hash = "sha256:${hex(roll, 64)}", size = ${20_000 + roll(900_000)} }`,
      'wheels = [',
      `    { url = "${file}-py3-none-any.whl", hash = "sha256:${hex(roll, 64)}", size = ${20_000 + roll(900_000)} },`,
      ']',
      '',
    ]
  })
  return `${['version = 1', 'requires-python = ">=3.12"', 'resolution-markers = [', '    "python_full_version >= \'3.13\'",', ']', '', ...packages].join('\n')}`
}

/** A bank statement in camt.053: bookings of a day, two returned, one in francs, one still pending. */
export function statement(): string {
  const roll = dice(4_705)
  const entries = lines(58, (i) => {
    const reason = i === 24 ? 'Account closed, amount returned' : i === 51 ? 'No mandate, debit refused' : undefined
    const amount =
      i === 35 ? '<Amt Ccy="CHF">118400.00</Amt>' : `<Amt Ccy="EUR">${10 + roll(900)}.${two(roll(100))}</Amt>`
    return [
      '      <Ntry>',
      `        <NtryRef>${2_026_111_600 + i}</NtryRef>`,
      `        ${amount}`,
      `        <CdtDbtInd>${roll(3) === 0 ? 'DBIT' : 'CRDT'}</CdtDbtInd>`,
      `        <Sts><Cd>${i === 44 ? 'PDNG' : 'BOOK'}</Cd></Sts>`,
      '        <BookgDt><Dt>2026-11-16</Dt></BookgDt>',
      '        <NtryDtls><TxDtls>',
      `          <Refs><EndToEndId>INV-${40_000 + roll(9_000)}-${i}</EndToEndId></Refs>`,
      `          <RltdPties><Dbtr><Pty><Nm>${pick(roll, ['Weber', 'Tanaka', 'Okafor', 'Ribeiro'])} ${pick(roll, ['GmbH', 'AG', 'KG', 'Ltd'])}</Nm></Pty></Dbtr></RltdPties>`,
      ...(reason === undefined
        ? []
        : [
            `          <RtrInf><Rsn><Cd>${i === 24 ? 'AC04' : 'MD01'}</Cd></Rsn><AddtlInf>${reason}</AddtlInf></RtrInf>`,
          ]),
      '        </TxDtls></NtryDtls>',
      '      </Ntry>',
    ]
  })
  return `${[
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08">',
    '  <BkToCstmrStmt>',
    '    <GrpHdr><MsgId>C53-20261116-0001</MsgId><CreDtTm>2026-11-16T21:30:04</CreDtTm></GrpHdr>',
    '    <Stmt>',
    '      <Acct><Id><IBAN>DE02120300000000202051</IBAN></Id><Ccy>EUR</Ccy></Acct>',
    '      <Bal><Tp><CdOrPrtry><Cd>OPBD</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">48211.07</Amt><CdtDbtInd>CRDT</CdtDbtInd></Bal>',
    '      <Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">-2077.41</Amt><CdtDbtInd>DBIT</CdtDbtInd></Bal>',
    ...entries,
    '    </Stmt>',
    '  </BkToCstmrStmt>',
    '</Document>',
  ].join('\n')}\n`
}

/** A frame of a library or, where `own`, of the shop. */
function frame(file: string, name: string, line: number, own: boolean, vars: Readonly<Record<string, string>>): object {
  return {
    filename: file,
    absPath: own ? `/srv/shop/${file}` : `/srv/venv/lib/python3.12/site-packages/${file}`,
    module: file.replace(/\//g, '.').replace(/\.py$/, ''),
    function: name,
    lineNo: line,
    colNo: null,
    inApp: own,
    context: [
      [line - 1, own ? '    quantity = sum(line.quantity for line in lines)' : `    state = self._state.${name}`],
      [line, own ? `    return quantity / line.per_box` : `    return self.${name}(request, state)`],
    ],
    vars,
  }
}

/** An event of Sentry as its API gives it: the frames of libraries, and in the middle the two of the shop. */
export function sentryEvent(): string {
  const roll = dice(4_706)
  const frames = Array.from({ length: 34 }, (_, i) => {
    if (i === 19)
      return frame('shop/basket/boxes.py', 'boxes_needed', 88, true, {
        quantity: "Decimal('12')",
        'line.per_box': "Decimal('0')",
        line: '<OrderLine 771940 sku=SKU-40913>',
      })
    return frame(
      `${pick(roll, ['django', 'gunicorn', 'sqlalchemy', 'opentelemetry'])}/${pick(roll, VERBS)}/${pick(roll, NOUNS).toLowerCase()}.py`,
      `${pick(roll, VERBS)}_${i}`,
      20 + roll(900),
      false,
      { request: `<WSGIRequest: POST '/api/basket/${roll(9)}'>` },
    )
  })
  const crumbs = Array.from({ length: 36 }, (_, i) => ({
    timestamp: `2026-11-16T${clock(i * 2, 11)}.${two(roll(1_000), 3)}Z`,
    type: 'default',
    category: i === 22 ? 'feature-flag' : pick(roll, ['query', 'httplib', 'redis']),
    level: 'info',
    message:
      i === 22
        ? 'boxes-by-weight switched on for tenant 118'
        : `${pick(roll, ['SELECT', 'UPDATE', 'GET', 'HGET'])} ${pick(roll, NOUNS).toLowerCase()}:${roll(90_000)}`,
  }))
  return `${JSON.stringify(
    {
      eventID: hex(roll, 32),
      projectID: 41,
      title: "DivisionByZero: [<class 'decimal.DivisionByZero'>]",
      platform: 'python',
      dateReceived: '2026-11-16T11:02:41.118Z',
      entries: [
        {
          type: 'exception',
          data: {
            values: [{ type: 'DivisionByZero', mechanism: { type: 'django', handled: false }, stacktrace: { frames } }],
          },
        },
        { type: 'breadcrumbs', data: { values: crumbs } },
      ],
      tags: [
        { key: 'release', value: 'shop@4.18.0' },
        { key: 'server_name', value: 'api-07.fra.internal' },
        { key: 'environment', value: 'production' },
      ],
    },
    null,
    2,
  )}\n`
}

/** A range of Prometheus: the lag of sixteen consumers every minute; one of them grows without end, one says NaN. */
export function queryRange(): string {
  const roll = dice(4_707)
  const result = Array.from({ length: 16 }, (_, series) => ({
    metric: {
      __name__: 'consumer_lag',
      group: series === 9 ? 'payout-sync' : pick(roll, ['orders', 'stock', 'mail', 'search']),
      partition: String(series),
      instance: `10.30.3.${10 + series}:9404`,
    },
    values: Array.from({ length: 42 }, (_, minute) => {
      const lag =
        series === 9 && minute > 12
          ? String(4_000 + minute * 2_917)
          : series === 12 && minute === 20
            ? 'NaN'
            : String(roll(60))
      return [1_794_812_400 + minute * 60, lag]
    }),
  }))
  return `${JSON.stringify({ status: 'success', warnings: ['store 10.30.9.4:10901 did not answer: context deadline exceeded'], data: { resultType: 'matrix', result } })}\n`
}
