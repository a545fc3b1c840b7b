// Held-out outputs that are data: tables, exports, manifests and answers, and what a program of one's own prints.
import { clock, dice, hex, lines, NOUNS, pick, two, VERBS } from './held-out-dice.ts'

/** An answer of GraphQL: much data, and the errors stand behind it. */
export function graphql(): string {
  const roll = dice(51)
  const edges = lines(150, () => '').map((_each, i) => ({
    cursor: hex(roll, 12),
    node: {
      id: `gid-${7_000 + i}`,
      title: `${pick(roll, NOUNS)} ${pick(roll, VERBS)} ${i}`,
      price: { amount: `${roll(90)}.${two(roll(99))}`, currency: 'EUR' },
      stock: i === 83 ? null : { left: roll(40), depot: `D${roll(5)}` },
    },
  }))
  const errors = [
    {
      message: 'Depot service timed out after 3000 ms',
      locations: [{ line: 9, column: 11 }],
      path: ['products', 'edges', 83, 'node', 'stock'],
      extensions: { code: 'DOWNSTREAM_TIMEOUT', service: 'depot' },
    },
  ]
  return JSON.stringify({ data: { products: { totalCount: 150, edges } }, errors }, null, 2)
}

/** An export of a bank. One row is in another currency, one has its columns shifted. */
export function bankCsv(): string {
  const roll = dice(52)
  const rows = lines(300, (i) => {
    const day = `2026-${two(1 + Math.floor(i / 28))}-${two(1 + (i % 28))}`
    if (i === 41) return `${day};RE-20411;Hansen & Co;;1.204,00;EUR;booked`
    if (i === 226) return `${day};RE-20226;Larch Paper;-48.900,00;CHF;booked;manual`
    return `${day};RE-${20_000 + roll(900)};${pick(roll, ['Alder Works', 'Birch Foods', 'Cedar Tools', 'Larch Paper', 'Maple Print'])};${roll(900)},${two(roll(99))};EUR;booked;auto`
  })
  return `booking_date;reference;party;amount;currency;state;origin\n${rows.join('\n')}\n`
}

/** Manifests of a cluster. One container runs as root, one asks for a hundred times the memory. */
export function manifests(): string {
  const roll = dice(53)
  const all = lines(34, (i) => {
    const name = `${pick(roll, NOUNS).toLowerCase()}-${pick(roll, VERBS)}-${i}`
    return [
      '---',
      'apiVersion: apps/v1',
      'kind: Deployment',
      'metadata:',
      `  name: ${i === 21 ? 'voucher-import' : name}`,
      '  namespace: shop',
      '  labels:',
      `    app.kubernetes.io/name: ${i === 21 ? 'voucher-import' : name}`,
      'spec:',
      `  replicas: ${2 + roll(3)}`,
      '  template:',
      '    spec:',
      '      securityContext:',
      `        runAsNonRoot: ${i === 8 ? 'false' : 'true'}`,
      '      containers:',
      '        - name: main',
      `          image: images.example.com/shop/${name}:1.${roll(30)}.${roll(9)}`,
      '          resources:',
      '            requests:',
      `              cpu: ${100 + roll(4) * 50}m`,
      '              memory: 256Mi',
      '            limits:',
      `              memory: ${i === 21 ? '51200Mi' : '512Mi'}`,
    ]
  })
  return `${all.join('\n')}\n`
}

/** Rows of one shape. One has an amount below zero, one has text where the others have a number. */
export function invoicesJson(): string {
  const roll = dice(54)
  const rows = Array.from({ length: 240 }, (_, i) => ({
    number: `R-${30_000 + i}`,
    customer: 100 + roll(800),
    net: i === 171 ? -18_244.5 : 20 + roll(900) + roll(100) / 100,
    vat: i === 59 ? 'reverse charge' : 19,
    paid: true,
    issued: `2026-10-${two(1 + (i % 30))}`,
  }))
  return JSON.stringify(rows)
}

export function netstat(): string {
  const roll = dice(55)
  const rows = lines(180, (i) => {
    if (i === 133)
      return 'tcp     4177      0 10.0.0.12:5432          10.0.6.91:48112         CLOSE_WAIT  2218/postgres: shop'
    if (i === 12)
      return 'tcp        0      0 0.0.0.0:6379            0.0.0.0:*               LISTEN      917/redis-server'
    const remote = `10.0.${roll(9)}.${roll(250)}:${40_000 + roll(20_000)}`
    return `tcp        0      0 10.0.0.12:${pick(roll, ['443 ', '8080', '5432']).padEnd(14)}${remote.padEnd(24)}${pick(roll, ['ESTABLISHED', 'ESTABLISHED', 'TIME_WAIT  '])} ${pick(roll, ['640/nginx: worker', '2218/postgres: shop', '1180/node'])}`
  })
  return `${['Active Internet connections (servers and established)', 'Proto Recv-Q Send-Q Local Address           Foreign Address         State       PID/Program name', ...rows].join('\n')}\n`
}

/** A program that no rule can know: no levels, words of its own, and what went wrong is said in passing. */
export function inHouse(): string {
  const roll = dice(56)
  const body = lines(360, (i) => {
    const lane = `lane ${'ABCDEF'[i % 6]}`
    if (i === 23) return ">> plan 7731 taken from yesterday, because today's plan has no carrier"
    if (i === 214) return `~~ ${lane} gave up on pallet P-90417 after 5 tries: scale reads 0 kg`
    if (i === 215) return '~~ pallet P-90417 put aside at gate 3, needs a person'
    return pick(roll, [
      `-- ${clock(i * 3)} ${lane} pallet P-${90_000 + i} weighed ${100 + roll(800)} kg, label ${hex(roll, 6)}`,
      `-- ${clock(i * 3)} ${lane} pallet P-${90_000 + i} moved to gate ${1 + roll(9)} in ${roll(90)} s`,
      `-- ${clock(i * 3)} ${lane} idle for ${roll(30)} s`,
    ])
  })
  return `${['sortline 4.11 (hall 2)', 'shift early, 6 lanes, 9 gates', ...body, '== shift closed: 239 pallets moved, 1 put aside, plan 7731'].join('\n')}\n`
}
