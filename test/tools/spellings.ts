// Thousands of ways to write addresses that are not public, as URLs. Each would lead a careless client to a port of this host or of
// its network. Deterministic: the same list in every run.

type Quad = readonly [number, number, number, number]

const HOSTS = [
  '127.0.0.1 127.0.0.2 127.1.2.3 127.255.255.254 0.0.0.0 10.0.0.1 10.20.30.40 172.16.0.1',
  '172.31.9.9 192.168.0.1 192.168.1.254 169.254.169.254 100.64.0.1 100.100.100.200 168.63.129.16',
].flatMap((line) => line.split(' ').map((host) => host.split('.').map(Number) as unknown as Quad))
const NAMES = [
  'localhost',
  'LocalHost',
  'a.localhost',
  'localhost.',
  'ｌｏｃａｌｈｏｓｔ',
  'local\u00adhost',
  'intra.test',
  '127.0.0.1.nip.test',
]
const RADIX: readonly ((part: number) => string)[] = [
  (part) => String(part),
  (part) => `0x${part.toString(16)}`,
  (part) => `0X${part.toString(16).toUpperCase()}`,
  (part) => `0${part.toString(8)}`,
  (part) => `000${part.toString(8)}`,
  (part) => `0x0000${part.toString(16)}`,
]

/** What can be done to any host, without making it another one. */
const DISGUISES: readonly ((host: string) => string)[] = [
  (host) => host,
  (host) => `${host}.`,
  (host) => host.replaceAll('.', '。'),
  (host) => host.replaceAll('.', '%2e'),
  (host) => host.replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
  (host) => host.replace(/[1-9]/g, (digit) => String.fromCodePoint(0x245f + Number(digit))),
  (host) => host.replace(/\d/g, (digit) => String.fromCodePoint(0x1d7ce + Number(digit))),
  (host) => host.replace(/\d/g, (digit) => `%3${digit}`),
  (host) => `${host.slice(0, 2)}\t${host.slice(2)}`,
  (host) => `${host.slice(0, 1)}\n${host.slice(1)}`,
  (host) => `${host.slice(0, 1)}\u200b${host.slice(1)}`,
]

export function spellings(port: number): readonly string[] {
  const hosts = HOSTS.flatMap((address) => [...numbers(address), ...carried(address)])
  const plain = [
    ...hosts,
    ...NAMES,
    '[::1]',
    '[0:0:0:0:0:0:0:1]',
    '[0::0001]',
    '[::]',
    '[fe80::1]',
    '[fd00:ec2::254]',
    '[FC00::1]',
  ]
  const zones = ['[fe80::1%25lo]', '[::1%25lo]', '[::1%lo]', '[fe80::1%251]']
  const disguised = plain.flatMap((host, at) => {
    const [first, second] = [DISGUISES[at % DISGUISES.length], DISGUISES[(at * 7 + 3) % DISGUISES.length]]
    return host.startsWith('[') ? [host] : [host, first?.(host) ?? host, second?.(host) ?? host]
  })
  return [
    ...new Set([...disguised, ...zones].flatMap((host, at) => [`http://${host}:${port}/`, dressed(host, port, at)])),
  ]
}

/** One to four parts, each in any radix. */
function numbers([a, b, c, d]: Quad): readonly string[] {
  const parted = [
    [a, b, c, d],
    [a, b, c * 256 + d],
    [a, (b * 256 + c) * 256 + d],
    [((a * 256 + b) * 256 + c) * 256 + d],
  ]
  return parted.flatMap((parts, at) =>
    RADIX.flatMap((_, first) => {
      const mixed = parts.map((part, i) => RADIX[(first + i * (at + 1)) % RADIX.length]?.(part) ?? '')
      return [mixed.join('.'), parts.map((part) => RADIX[first]?.(part) ?? '').join('.')]
    }),
  )
}

/** Inside IPv6: mapped, compatible, translated, tunnelled. */
function carried([a, b, c, d]: Quad): readonly string[] {
  const [dotted, high, low] = [`${a}.${b}.${c}.${d}`, (a * 256 + b).toString(16), (c * 256 + d).toString(16)]
  const forms = [
    `::ffff:${dotted}`,
    `::ffff:${high}:${low}`,
    `0:0:0:0:0:FFFF:${dotted}`,
    `0000:0000:0000:0000:0000:ffff:${high}:${low}`,
    `::${dotted}`,
    `::ffff:0:${dotted}`,
    `64:ff9b::${dotted}`,
    `64:ff9b:1::${high}:${low}`,
    `2002:${high}:${low}::1`,
    `2001:0:${high}:${low}::1`,
  ]
  return forms.map((form) => `[${form}]`)
}

/** The same host in a URL that looks like another one's. */
function dressed(host: string, port: number, at: number): string {
  const forms = [
    `http://example.org@${host}:${port}/`,
    `http://example.org:80@${host}:${port}/`,
    `http://${host}:${port}#@example.org/`,
    `http://${host}:${port}\\@example.org/`,
    `http://${host}:${port}?@example.org/`,
    `HTTP:${host}:${port}/`,
    `http:\\\\${host}:${port}\\`,
    ` \thttp:///${host}:${port}/ `,
    `http://${host}:0${port}/../..//x`,
    `https://${host}:${port}/`,
  ]
  return forms[at % forms.length] ?? ''
}
