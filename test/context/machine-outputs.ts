// Outputs of services and machines that cannot run here, made by generators in the form that those programs print, each with the
// lines that must stay in a shortened form. Together with outputs.ts they are the corpus of the content router, in two halves: rules
// are tuned on one half only, and figures are reported of the other.
import { createHash } from 'node:crypto'
import type { ContentHint, ContentKind } from '../../src/index.ts'
import { type Output, OUTPUTS } from './outputs.ts'

function linesFrom(count: number, make: (i: number) => string): string {
  return `${Array.from({ length: count }, (_, i) => make(i)).join('\n')}\n`
}

function pad(value: number, width = 2): string {
  return String(value).padStart(width, '0')
}

function clock(i: number): string {
  return `${pad(8 + (Math.floor(i / 3_600) % 12))}:${pad(Math.floor(i / 60) % 60)}:${pad(i % 60)}`
}

function journal(): string {
  return linesFrom(260, (i) => {
    const at = `Nov 16 ${clock(i * 7)} web-1`
    if (i === 141)
      return `${at} kernel: Out of memory: Killed process 4711 (node) total-vm:2101340kB, anon-rss:1893120kB, file-rss:0kB`
    if (i === 142) return `${at} systemd[1]: shop.service: Main process exited, code=killed, status=9/KILL`
    if (i % 5 === 0) return `${at} CRON[${1_000 + i}]: pam_unix(cron:session): session opened for user root(uid=0)`
    if (i % 5 === 1)
      return `${at} sshd[${2_000 + i}]: Accepted publickey for deploy from 10.0.0.${i % 250} port ${40_000 + i}`
    return `${at} systemd[1]: Started Session ${i} of User deploy.`
  })
}

function accessLog(): string {
  return linesFrom(320, (i) => {
    const status = i === 207 ? 502 : i % 40 === 0 ? 304 : 200
    const agent = i === 88 ? '"sqlmap/1.7 (https://sqlmap.org)"' : '"Mozilla/5.0 (X11; Linux x86_64)"'
    const path = i === 88 ? '/login?user=1%27%20OR%201=1' : `/items/${(i * 31) % 997}`
    return `10.0.${i % 4}.${(i * 7) % 250} - - [16/Nov/2026:${clock(i)} +0000] "GET ${path} HTTP/1.1" ${status} ${1_000 + ((i * 53) % 900)} "-" ${agent}`
  })
}

function kernelRing(): string {
  return linesFrom(300, (i) => {
    const at = `[${String((i * 0.37).toFixed(6)).padStart(12)}]`
    if (i === 199) return `${at} blk_update_request: I/O error, dev sdb, sector 20971520 op 0x0:(READ)`
    if (i === 200) return `${at} EXT4-fs (sdb1): Remounting filesystem read-only`
    if (i % 3 === 0) return `${at} pci 0000:${pad(i % 32)}:00.0: [8086:${pad(i * 17, 4)}] type 00 class 0x0${i % 9}0000`
    return `${at} usb 1-${i % 9}: new high-speed USB device number ${i} using xhci_hcd`
  })
}

function playbook(): string {
  return linesFrom(16, (task) => {
    const title = `TASK [role_${task % 5} : step ${task}] ${'*'.repeat(40)}`
    const hosts = linesFrom(24, (host) => {
      if (task === 9 && host === 17)
        return 'fatal: [web-17]: UNREACHABLE! => {"changed": false, "msg": "Failed to connect to the host via ssh", "unreachable": true}'
      return `${(host + task) % 4 === 0 ? 'changed' : 'ok'}: [web-${host}]`
    })
    return `${title}\n${hosts}`
  })
}

function pipeline(): string {
  return linesFrom(300, (i) => {
    const at = `2026-11-16T${clock(i)}.${pad(i * 7_919, 7).slice(-7)}Z`
    if (i === 180) return `${at} ##[error]Process completed with exit code 137.`
    if (i % 30 === 0) return `${at} ##[group]Run step ${i / 30}`
    return `${at} copying layer ${i} of 300 to the cache, ${(i * 13) % 900} kB`
  })
}

function oracleLoad(): string {
  return linesFrom(420, (i) => {
    if (i === 233) return 'ORA-12899: value too large for column "SHOP"."ORDERS"."NOTE" (actual: 412, maximum: 400)'
    return i % 2 === 0 ? '1 row created.' : `SQL> INSERT INTO orders VALUES (${i}, ${(i * 37) % 900});`
  })
}

function serviceJson(): string {
  return linesFrom(260, (i) => {
    const odd =
      i === 121 ? { level: 50, msg: 'upstream hung up', err: { code: 'ECONNRESET' } } : { level: 30, msg: 'served' }
    return JSON.stringify({
      time: 1_763_280_000_000 + i * 811,
      pid: 7,
      host: 'api-1',
      req: `r-${i}`,
      ms: (i * 13) % 80,
      ...odd,
    })
  })
}

/** One row has a key that the others do not have, and nothing in it sounds like trouble. */
function usersJson(): string {
  const rows = Array.from({ length: 220 }, (_, i) => ({
    id: 7_000 + i,
    login: `user${i}`,
    plan: ['free', 'team', 'pro'][i % 3],
    seats: 1 + (i % 12),
    ...(i === 133 ? { legacyContract: 'C-1997 until 2031' } : {}),
  }))
  return JSON.stringify({ page: 1, users: rows }, null, 1)
}

function metrics(): string {
  const families = linesFrom(40, (i) => {
    const name = `shop_stage_${String.fromCharCode(97 + (i % 26))}${i}_seconds`
    return `# HELP ${name} Time spent in stage ${i}.\n# TYPE ${name} histogram\n${name}_sum ${(i * 1.7).toFixed(3)}\n${name}_count ${i * 91}`
  })
  const up = linesFrom(30, (i) => `up{job="node",instance="10.0.0.${i}:9100"} ${i === 19 ? 0 : 1}`)
  return `${families}# HELP up Whether the last scrape worked.\n# TYPE up gauge\n${up}`
}

function sensors(): string {
  const rows = linesFrom(420, (i) => {
    const celsius = i === 302 ? '412.7' : (18 + ((i * 7) % 60) / 10).toFixed(1)
    const note = i === 97 ? '"replaced, see ticket 88"' : ''
    return `2026-11-16T${clock(i * 60)}Z,sensor-${i % 9},${celsius},${40 + (i % 11)},${note}`
  })
  return `time,sensor,celsius,humidity,note\n${rows}`
}

function compose(): string {
  const services = linesFrom(45, (i) => {
    const policy = i === 31 ? '    privileged: true\n' : ''
    return `  service-${i}:\n    image: registry.example.com/shop/service-${i}:1.${i % 4}\n    restart: always\n${policy}    environment:\n      PORT: "${8_000 + i}"\n      LOG_LEVEL: info\n    networks:\n      - backend`
  })
  return `version: "3.9"\nservices:\n${services}networks:\n  backend:\n    driver: bridge\n`
}

function processes(): string {
  const head = 'USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND'
  const rows = linesFrom(180, (i) => {
    const [state, command] =
      i === 121 ? ['Z', '[convert] <defunct>'] : ['S', `/usr/bin/worker --queue q${i % 7} --slot ${i}`]
    const cpu = i === 64 ? '98.7' : (i % 5) / 10
    return `app      ${String(3_000 + i).padStart(7)} ${String(cpu).padStart(4)}  0.${i % 9} ${200_000 + i} ${9_000 + i} ?        ${state}    08:0${i % 9}   0:0${i % 6} ${command}`
  })
  return `${head}\n${rows}`
}

function made(name: string, kind: ContentKind, hint: ContentHint, text: string, stays: readonly string[]): Output {
  return { id: `made_${name.replace(/\W/g, '_')}`, name, kind, hint, text, stays }
}

const MADE: readonly Output[] = [
  made('journalctl', 'log', { command: 'journalctl -u shop' }, journal(), [
    'Killed process 4711 (node)',
    'status=9/KILL',
  ]),
  made('access.log', 'log', {}, accessLog(), ['" 502 ', 'sqlmap/1.7']),
  made('dmesg', 'log', { command: 'dmesg' }, kernelRing(), ['I/O error, dev sdb', 'Remounting filesystem read-only']),
  made('ansible', 'log', { command: 'ansible-playbook site.yml' }, playbook(), ['[web-17]: UNREACHABLE!', 'step 9]']),
  made('pipeline', 'log', {}, pipeline(), ['exit code 137', 'Run step 5']),
  made('sqlplus', 'log', { command: 'sqlplus' }, oracleLoad(), ['ORA-12899: value too large']),
  made('service.jsonl', 'json', {}, serviceJson(), ['upstream hung up', 'ECONNRESET', 'r-121']),
  made('users.json', 'json', {}, usersJson(), ['C-1997 until 2031', 'user133']),
  made('metrics', 'log', {}, metrics(), ['up{job="node",instance="10.0.0.19:9100"} 0 || 10.0.0.19:9100']),
  made('sensors.csv', 'log', { path: 'sensors.csv' }, sensors(), ['412.7', 'replaced, see ticket 88', 'celsius']),
  made('compose.yaml', 'log', { path: 'compose.yaml' }, compose(), ['privileged: true', 'services:', 'service-31:']),
  made('ps', 'log', { command: 'ps aux' }, processes(), ['<defunct>', '98.7', 'COMMAND']),
]

export const ALL: readonly Output[] = [...OUTPUTS, ...MADE]

/** Rules may be tuned on these. The halves are decided by the names alone. */
export function isTuned({ name }: Output): boolean {
  return (createHash('sha256').update(name).digest()[0] ?? 0) % 2 === 0
}

/** Parts of lines that must be in a shortened form and are not. Alternatives stand between ` || `. */
export function missingIn({ stays }: Output, shown: string): readonly string[] {
  // oxlint-disable-next-line no-control-regex -- Colours are taken out here.
  const plain = shown.replace(/\u001B\[[0-9;?]*[A-Za-z]/g, '')
  return stays.filter((part) => !part.split(' || ').some((each) => plain.includes(each)))
}
