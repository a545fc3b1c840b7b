// Generators of data files, answers of interfaces and free formats of in-house tools, for the outputs in blind.ts.
import { clock, dice, hex, lines, NOUNS, pick, two, VERBS } from './held-out-dice.ts'

/** A report of tests as XML, with one failure and one error. */
export function junitXml(): string {
  const roll = dice(341)
  const suites = lines(22, (s) => [
    `  <testsuite name="shop.${pick(roll, NOUNS)}${s}Test" tests="9" failures="${s === 15 ? 1 : 0}" errors="${s === 6 ? 1 : 0}" skipped="0" time="${roll(9)}.${two(roll(999), 3)}" timestamp="2026-11-16T${clock(s * 40)}">`,
    ...lines(9, (t) => {
      const open = `    <testcase name="${pick(roll, VERBS)}s_${pick(roll, NOUNS).toLowerCase()}_${t}" classname="shop.Suite${s}" time="0.${two(roll(999), 3)}"`
      if (s === 6 && t === 1)
        return [
          '    <testcase name="reads_the_depot_calendar" classname="shop.depot.CalendarTest" time="2.004">',
          '      <error message="calendar.ics: unexpected end of file" type="java.io.EOFException">java.io.EOFException: calendar.ics: unexpected end of file',
          ...lines(14, (k) => `\tat shop.depot.Calendar.read${k}(Calendar.java:${30 + k * 7})`),
          '      </error>',
          '    </testcase>',
        ]
      if (s === 15 && t === 7)
        return [
          '    <testcase name="splits_a_refund_over_two_cards" classname="shop.refund.SplitTest" time="0.041">',
          '      <failure message="expected:&lt;[12.50, 7.50]&gt; but was:&lt;[20.00]&gt;" type="org.opentest4j.AssertionFailedError">org.opentest4j.AssertionFailedError',
          '\tat shop.refund.SplitTest.splits_a_refund_over_two_cards(SplitTest.java:77)',
          '      </failure>',
          '    </testcase>',
        ]
      return `${open}/>`
    }),
    '  </testsuite>',
  ])
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites tests="198" failures="1" errors="1" time="88.204">\n${suites.join('\n')}\n</testsuites>\n`
}

/** Findings of a scanner as SARIF: many notes, one error. */
export function sarif(): string {
  const roll = dice(342)
  const results = Array.from({ length: 62 }, (_, i) => ({
    ruleId:
      i === 39
        ? 'js/sql-injection'
        : pick(roll, ['js/unused-local-variable', 'js/useless-assignment', 'js/trivial-conditional']),
    level: i === 39 ? 'error' : 'note',
    message: {
      text:
        i === 39
          ? 'This query string depends on a user-provided value (req.query.depot).'
          : `Unused variable ${pick(roll, NOUNS).toLowerCase()}${i}.`,
    },
    locations: [
      {
        physicalLocation: {
          artifactLocation: {
            uri:
              i === 39
                ? 'src/stock/by-depot.ts'
                : `src/${pick(roll, NOUNS).toLowerCase()}/${pick(roll, VERBS)}-${i}.ts`,
            uriBaseId: '%SRCROOT%',
          },
          region: { startLine: i === 39 ? 166 : 1 + roll(300), startColumn: 3 + roll(30), endColumn: 40 + roll(30) },
        },
      },
    ],
    partialFingerprints: { primaryLocationLineHash: `${hex(roll, 16)}:1` },
  }))
  return `${JSON.stringify({ $schema: 'https://json.schemastore.org/sarif-2.1.0.json', version: '2.1.0', runs: [{ tool: { driver: { name: 'CodeQL', semanticVersion: '2.18.1' } }, results }] }, null, 2)}\n`
}

/** The settings of a collector of figures. One input accepts any certificate, and one has another interval than all others. */
export function telegraf(): string {
  const roll = dice(343)
  const inputs = lines(56, (i) => [
    '[[inputs.http_response]]',
    `  name_override = "${i === 37 ? 'ledger_gate' : `${pick(roll, NOUNS).toLowerCase()}_${i}`}"`,
    `  urls = ["https://${pick(roll, NOUNS).toLowerCase()}-${i}.svc.example:8443/health"]`,
    `  interval = "${i === 18 ? '12h' : '30s'}"`,
    '  response_timeout = "5s"',
    '  method = "GET"',
    '  response_status_code = 200',
    `  insecure_skip_verify = ${i === 37 ? 'true' : 'false'}`,
    '  [inputs.http_response.tags]',
    `    team = "${pick(roll, ['money', 'goods', 'edge'])}"`,
    '',
  ])
  return `# Collector of hall 2 and hall 3.\n[global_tags]\n  site = "north"\n\n[agent]\n  interval = "30s"\n  round_interval = true\n  metric_batch_size = 1000\n  flush_interval = "10s"\n\n[[outputs.influxdb_v2]]\n  urls = ["https://influx.example:8086"]\n  bucket = "halls"\n\n${inputs.join('\n')}\n`
}

/** The description of an interface. One operation needs no login, one is deprecated. */
export function openapi(): string {
  const roll = dice(344)
  const paths = lines(40, (i) => {
    const noun = pick(roll, NOUNS).toLowerCase()
    return [
      i === 27 ? '  /refunds/force:' : `  /${noun}s/${i}/{id}:`,
      `    ${i === 27 ? 'post' : 'get'}:`,
      `      operationId: ${i === 27 ? 'forceRefund' : `${pick(roll, VERBS)}${pick(roll, NOUNS)}${i}`}`,
      `      summary: ${i === 27 ? 'Refund without the approval of a clerk' : `One ${noun} by its number`}`,
      ...(i === 9 ? ['      deprecated: true'] : []),
      '      security:',
      i === 27 ? '        - {}' : '        - bearer: [read]',
      '      parameters:',
      '        - name: id',
      '          in: path',
      '          required: true',
      '          schema:',
      '            type: string',
      '      responses:',
      "        '200':",
      '          description: It was found',
      '          content:',
      '            application/json:',
      '              schema:',
      `                $ref: '#/components/schemas/${pick(roll, NOUNS)}'`,
      "        '404':",
      '          description: There is none',
    ]
  })
  return `openapi: 3.1.0\ninfo:\n  title: Shop\n  version: 2026.11.2\nservers:\n  - url: https://api.shop.example/v2\npaths:\n${paths.join('\n')}\ncomponents:\n  securitySchemes:\n    bearer:\n      type: http\n      scheme: bearer\n`
}

/** A page of charges of a payment service. One is disputed, one was declined by the bank. */
export function charges(): string {
  const roll = dice(345)
  const data = Array.from({ length: 48 }, (_, i) => ({
    id: `ch_${hex(roll, 22)}`,
    object: 'charge',
    amount: 500 + roll(9_000),
    amount_refunded: 0,
    captured: i !== 31,
    created: 1_794_800_000 - i * 311,
    currency: 'eur',
    customer: `cus_${hex(roll, 14)}`,
    disputed: i === 12,
    failure_code: i === 31 ? 'card_declined' : null,
    failure_message: i === 31 ? 'The card was reported stolen by its bank.' : null,
    outcome: {
      network_status: i === 31 ? 'declined_by_network' : 'approved_by_network',
      risk_level: i === 31 ? 'highest' : 'normal',
      risk_score: i === 31 ? 94 : roll(40),
      type: i === 31 ? 'issuer_declined' : 'authorized',
    },
    paid: i !== 31,
    payment_method_details: {
      card: { brand: pick(roll, ['visa', 'mastercard']), last4: two(roll(9_999), 4), country: 'DE' },
      type: 'card',
    },
    dispute: i === 12 ? 'dp_1QLm7T2eZvKYlo2C' : null,
    status: i === 31 ? 'failed' : 'succeeded',
  }))
  return `${JSON.stringify({ object: 'list', url: '/v1/charges', has_more: true, data })}\n`
}

/** The log of a batch job on a mainframe: steps with their codes, one of which ended abnormally. */
export function hostJob(): string {
  const roll = dice(346)
  const at = (i: number): string => clock(i * 3, 2).replaceAll(':', '.')
  const steps = lines(60, (i) => {
    const step = `STEP${two(i * 10, 4)}`
    if (i === 41)
      return [
        `${at(i)} JOB04418  IEC070I 104-204,LEDGNITE,${step},POSTFILE,0A41,PRD114,PRD.LEDGER.POSTINGS`,
        `${at(i)} JOB04418  IEA995I SYMPTOM DUMP OUTPUT`,
        '           SYSTEM COMPLETION CODE=0C7  REASON CODE=00000000',
        '            TIME=02.03.44  SEQ=01187  CPU=0000  ASID=0071',
        '            PSW AT TIME OF ERROR  078D1000   9A40117E  ILC 6  INTC 07',
        `${at(i)} JOB04418  IEF450I LEDGNITE ${step} - ABEND=S0C7 U0000 REASON=00000000`,
      ]
    if (i > 41) return `${at(i)} JOB04418  IEF272I LEDGNITE ${step} - STEP WAS NOT EXECUTED.`
    return [
      `${at(i)} JOB04418  IEF236I ALLOC. FOR LEDGNITE ${step}`,
      ...lines(
        4,
        (d) =>
          `${at(i)} JOB04418  IEF237I 0A${two(roll(99))} ALLOCATED TO ${pick(roll, ['SYSOUT', 'SORTIN', 'SORTOUT', 'MASTER'])}${d}`,
      ),
      `${at(i)} JOB04418  IEF142I LEDGNITE ${step} - STEP WAS EXECUTED - COND CODE ${i === 17 ? '0004' : '0000'}`,
      `${at(i)} JOB04418  IEF285I   PRD.${pick(roll, NOUNS).toUpperCase()}.G${two(roll(9_999), 4)}V00                       KEPT`,
    ]
  })
  return `1                         J E S 2  J O B  L O G  --  S Y S T E M  P R D 1\n\n02.00.00 JOB04418 ---- MONDAY,    16 NOV 2026 ----\n02.00.00 JOB04418  $HASP373 LEDGNITE STARTED - INIT 4    - CLASS N - SYS PRD1\n${steps.join('\n')}\n02.04.02 JOB04418  $HASP395 LEDGNITE ENDED - ABEND=S0C7\n`
}

/** The free log of a control of cold rooms, which speaks of trouble without any usual word for it. */
export function coldRooms(): string {
  const roll = dice(347)
  return `~~ frostline 4.2, 14 rooms, poll each 20 s ~~\n${lines(300, (i) => {
    const at = `<${clock(i * 20, 0)}>`
    const room = `room ${two(1 + (i % 14))}`
    if (i === 158) return `${at} room 05 | door open since 00:41, nobody badged in | -11.2C`
    if (i === 176) return `${at} room 05 | -6.8C  set -22.0C  compressor 2 draws 0.0 A, falling back to compressor 1`
    if (i === 263) return `${at} room 05 | stock moved to room 11 by hand, 214 crates, signed: M. Ito`
    if (i % 25 === 3) return `${at} ${room} | defrost cycle begun, fans at 30%`
    if (i % 25 === 8) return `${at} ${room} | defrost cycle over, took ${5 + roll(4)} min`
    return `${at} ${room} | ${-21 - roll(2)}.${roll(9)}C  set -22.0C  hum ${60 + roll(9)}%  comp ${pick(roll, ['on', 'on', 'idle'])}`
  }).join('\n')}\n~~ day closed: 14 rooms, 1 outside of its band (room 05, 01:19 h) ~~\n`
}

/** Measured spans as values between tabs. One service answers a thousand times slower, one row has no service. */
export function spansTsv(): string {
  const roll = dice(348)
  const rows = lines(320, (i) => {
    const at = `2026-11-16T${clock(i * 5)}Z`
    if (i === 88) return `${at}\t${hex(roll, 16)}\ttariff-engine\tGET /quote\t48211.6\t504\tfra-2`
    if (i === 241) return `${at}\t${hex(roll, 16)}\t\tPOST /intake\t${roll(40)}.${roll(9)}\t200\tunknown`
    return `${at}\t${hex(roll, 16)}\t${pick(roll, ['basket', 'stock', 'tariff-engine', 'label'])}\t${pick(roll, ['GET /quote', 'GET /items', 'POST /labels'])}\t${1 + roll(60)}.${roll(9)}\t200\t${pick(roll, ['fra-1', 'fra-2'])}`
  })
  return `start\ttrace_id\tservice\tresource\tduration_ms\tstatus\tzone\n${rows.join('\n')}\n`
}
