// Generators of what the command lines of clusters, containers and clouds print, for the outputs in fresh.ts.
import { clock, dice, hex, lines, NOUNS, pick, two, VERBS } from './held-out-dice.ts'

const SPACES = ['shop', 'payments', 'search', 'monitoring', 'kube-system', 'ingress'] as const

function podName(roll: (below: number) => number): string {
  return `${pick(roll, NOUNS).toLowerCase()}-${pick(roll, ['api', 'worker', 'cache', 'cron'])}-${hex(roll, 9)}-${hex(roll, 5)}`
}

/** kubectl top over all pods: one holds very much memory, one burns eight cores. */
export function topPods(): string {
  const roll = dice(4_401)
  const row = (space: string, pod: string, cpu: string, memory: string): string =>
    `${space.padEnd(14)}${pod.padEnd(42)}${cpu.padEnd(13)}${memory}`
  const rows = lines(172, (i) => {
    if (i === 71) return row('payments', 'fraud-scores-7d9c4bb86f-q8z2n', '96m', '15873Mi')
    if (i === 109) return row('search', 'synonym-loader-29387100-kfx7w', '7884m', '311Mi')
    return row(pick(roll, SPACES), podName(roll), `${1 + roll(180)}m`, `${18 + roll(600)}Mi`)
  })
  return `${[row('NAMESPACE', 'NAME', 'CPU(cores)', 'MEMORY(bytes)'), ...rows].join('\n')}\n`
}

/** The joined logs of docker compose: a database refuses a password, a worker is killed, and a clock is wrong. */
export function composeLogs(): string {
  const roll = dice(4_402)
  const services = ['basket-1', 'ledger-1', 'mail-1', 'gateway-1', 'redis-1', 'postgres-1'] as const
  const say = (service: string, text: string): string => `${service.padEnd(11)} | ${text}`
  const body = lines(206, (i) => {
    const at = `2026-11-16 ${clock(i * 2, 7)}`
    if (i === 74)
      return [
        say('postgres-1', `${at}.204 UTC [211] FATAL:  password authentication failed for user "ledger_ro"`),
        say(
          'postgres-1',
          `${at}.204 UTC [211] DETAIL:  Connection matched file "/etc/postgresql/pg_hba.conf" line 14: "host all all all scram-sha-256"`,
        ),
      ]
    if (i === 101)
      return say(
        'redis-1',
        `1:M 16 Nov 2026 ${clock(i * 2, 7)}.118 # Can't save in background: fork: Cannot allocate memory`,
      )
    if (i === 129) return ['mail-1 exited with code 137']
    if (i === 140) return say('gateway-1', `${at} route table loaded: 0 routes from /etc/gateway/routes.d`)
    const service = pick(roll, services)
    if (service === 'redis-1')
      return say(
        service,
        `1:M 16 Nov 2026 ${clock(i * 2, 7)}.${two(roll(1_000), 3)} * ${100 + roll(900)} changes in 300 seconds. Saving...`,
      )
    if (service === 'postgres-1')
      return say(
        service,
        `${at}.${two(roll(1_000), 3)} UTC [27] LOG:  checkpoint complete: wrote ${20 + roll(800)} buffers (0.${roll(9)}%)`,
      )
    if (service === 'gateway-1')
      return say(service, `${at} GET /api/${pick(roll, NOUNS).toLowerCase()}s/${roll(9_000)} 200 ${2 + roll(70)}ms`)
    return say(
      service,
      `${at} INFO ${pick(roll, VERBS)} ${pick(roll, NOUNS).toLowerCase()} id=${1_000 + roll(90_000)} took=${1 + roll(80)}ms`,
    )
  })
  return `${['Attaching to basket-1, gateway-1, ledger-1, mail-1, postgres-1, redis-1', ...body, 'Gracefully stopping... (press Ctrl+C again to force)'].join('\n')}\n`
}

const PROBES = [
  'ok\n',
  'ok\n',
  'curl: (7) Failed to connect to localhost port 8080\n',
  'queue depth 48211 is above 20000\n',
  'curl: (28) Operation timed out after 5000 milliseconds\n',
] as const

/** How the third container fares, and the others. */
function stateOf(i: number, roll: (below: number) => number): object {
  const sick = i === 2
  return {
    Status: 'running',
    Running: true,
    Paused: false,
    Restarting: false,
    OOMKilled: sick,
    Dead: false,
    Pid: 2_000 + roll(30_000),
    ExitCode: 0,
    Error: '',
    StartedAt: sick ? '2026-11-16T07:58:31.002117Z' : `2026-11-14T06:00:0${i}.118Z`,
    FinishedAt: sick ? '2026-11-16T07:58:29.771903Z' : '0001-01-01T00:00:00Z',
    Health: {
      Status: sick ? 'unhealthy' : 'healthy',
      FailingStreak: sick ? 3 : 0,
      Log: PROBES.map((probe, n) => ({
        Start: `2026-11-16T${clock(n * 30 + i)}.184912Z`,
        End: `2026-11-16T${clock(n * 30 + i)}.90${roll(10)}331Z`,
        ExitCode: sick && n > 1 ? 1 : 0,
        Output: sick ? probe : 'ok\n',
      })),
    },
  }
}

function container(i: number, roll: (below: number) => number): object {
  const name = ['basket', 'ledger', 'mail', 'gateway'][i] ?? 'extra'
  const database = i === 1 ? 'postgres://ledger-staging.internal:5432/ledger' : `postgres://db.internal:5432/${name}`
  return {
    Id: hex(roll, 64),
    Created: `2026-11-14T0${i}:12:09.41922Z`,
    Path: '/usr/local/bin/run',
    Args: ['--service', name],
    State: stateOf(i, roll),
    Image: `sha256:${hex(roll, 64)}`,
    Name: `/${name}`,
    RestartCount: i === 2 ? 19 : 0,
    Driver: 'overlay2',
    Platform: 'linux',
    HostConfig: {
      Binds: [`/srv/${name}/data:/data:rw`, '/etc/ssl/certs:/etc/ssl/certs:ro'],
      LogConfig: { Type: 'json-file', Config: { 'max-file': '3', 'max-size': '20m' } },
      NetworkMode: 'shop_default',
      RestartPolicy: { Name: 'unless-stopped', MaximumRetryCount: 0 },
      Memory: i === 2 ? 100_663_296 : 2_147_483_648,
      NanoCpus: 2_000_000_000,
      PidsLimit: null,
      ShmSize: 67_108_864,
      ReadonlyPaths: ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'],
    },
    Mounts: [{ Type: 'bind', Source: `/srv/${name}/data`, Destination: '/data', Mode: 'rw', RW: true }],
    Config: {
      Hostname: hex(roll, 12),
      User: '10001',
      Env: ['TZ=Europe/Berlin', `SERVICE=${name}`, `POOL=${8 + roll(8)}`, `DATABASE_URL=${database}`, 'LOG_LEVEL=info'],
      Image: `registry.example/shop/${name}:4.18.${roll(9)}`,
      Labels: { 'com.docker.compose.project': 'shop', 'com.docker.compose.service': name },
    },
    NetworkSettings: { Networks: { shop_default: { Gateway: '172.22.0.1', IPAddress: `172.22.0.${i + 2}` } } },
  }
}

/** docker inspect of four containers, the third of which is starved of memory. */
export function inspect(): string {
  const roll = dice(4_403)
  return `${JSON.stringify(
    Array.from({ length: 4 }, (_, i) => container(i, roll)),
    null,
    4,
  )}\n`
}

/** The security groups of an account, one of which opens a database to a foreign address. */
export function securityGroups(): string {
  const roll = dice(4_404)
  const rule = (port: number, cidr: string, why: string): object => ({
    FromPort: port,
    IpProtocol: 'tcp',
    IpRanges: [{ CidrIp: cidr, Description: why }],
    Ipv6Ranges: [],
    PrefixListIds: [],
    ToPort: port,
    UserIdGroupPairs: [],
  })
  const groups = Array.from({ length: 19 }, (_, i) => {
    const name = `${pick(roll, NOUNS).toLowerCase()}-${pick(roll, ['api', 'db', 'cache', 'jobs'])}-${i}`
    const odd = i === 11 ? [rule(5_432, '203.0.113.77/32', 'temporary for the demo, remove on Friday')] : []
    const legacy = i === 14 ? [rule(3_389, '10.0.0.0/8', 'windows jump host')] : []
    return {
      Description: i === 11 ? 'ledger primary' : `managed by terraform: ${name}`,
      GroupName: name,
      IpPermissions: [
        rule(pick(roll, [443, 8_443, 8_080]), `10.40.${roll(60)}.0/24`, 'service subnet'),
        rule(9_100, '10.41.0.0/16', 'node exporter'),
        ...odd,
        ...legacy,
      ],
      OwnerId: '410027719382',
      GroupId: `sg-0${hex(roll, 16)}`,
      IpPermissionsEgress: [
        {
          IpProtocol: '-1',
          IpRanges: [{ CidrIp: '0.0.0.0/0' }],
          Ipv6Ranges: [],
          PrefixListIds: [],
          UserIdGroupPairs: [],
        },
      ],
      Tags: [
        { Key: 'team', Value: pick(roll, ['platform', 'payments', 'search']) },
        { Key: 'terraform', Value: i === 11 ? 'false' : 'true' },
      ],
      VpcId: 'vpc-07b1d9e02f4c5a118',
    }
  })
  return `${JSON.stringify({ SecurityGroups: groups }, null, 4)}\n`
}

/** helm diff: each deployment has a new image; one loses memory, one changes its mode, and a budget goes away. */
export function helmDiff(): string {
  const roll = dice(4_405)
  const names = [...NOUNS.map((noun) => noun.toLowerCase()), 'gateway', 'mailer', 'sitemap', 'fraud', 'labels']
  const parts = names.flatMap((name, i) => {
    const memory = i === 9 ? ['-             memory: 1Gi', '+             memory: 96Mi'] : ['              memory: 1Gi']
    const mode =
      i === 12 ? ['-           value: "commit"', '+           value: "dry-run"'] : ['            value: "commit"']
    return [
      `shop, ${name}, Deployment (apps) has changed:`,
      `  # Source: shop/templates/${name}/deployment.yaml`,
      '  apiVersion: apps/v1',
      '  kind: Deployment',
      '  metadata:',
      `    name: ${name}`,
      '  spec:',
      `    replicas: ${2 + roll(5)}`,
      '    template:',
      '      metadata:',
      '        annotations:',
      `-         checksum/config: ${hex(roll, 40)}`,
      `+         checksum/config: ${hex(roll, 40)}`,
      '      spec:',
      '        containers:',
      `        - name: ${name}`,
      `-         image: registry.example/shop/${name}:4.17.2`,
      `+         image: registry.example/shop/${name}:4.18.0`,
      '          env:',
      '          - name: WRITE_MODE',
      ...mode,
      '          resources:',
      '            limits:',
      ...memory,
      ...(i === 11
        ? [
            'shop, ledger-pdb, PodDisruptionBudget (policy) has been removed:',
            '- # Source: shop/templates/ledger/pdb.yaml',
            '- apiVersion: policy/v1',
            '- kind: PodDisruptionBudget',
            '- spec:',
            '-   minAvailable: 2',
            '+ ',
          ]
        : []),
    ]
  })
  return `${parts.join('\n')}\n`
}

/** What istiod knows of each proxy: one never answered, and one is of an old version. */
export function proxyStatus(): string {
  const roll = dice(4_406)
  const row = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => cell.padEnd([54, 12, 10, 10, 28, 10, 12, 26, 8][i] ?? 8))
      .join(' ')
      .trimEnd()
  const rows = lines(118, (i) => {
    const istiod = `istiod-6f8d9c7b54-${pick(roll, ['4k2zt', 'm9x7c'])}`
    if (i === 52)
      return row([
        'settlement-worker-5b7f8c9d66-tw4hn.payments',
        'eu-1',
        'SYNCED',
        'SYNCED',
        'STALE (Never Acknowledged)',
        'SYNCED',
        'IGNORED',
        istiod,
        '1.23.2',
      ])
    if (i === 80)
      return row([
        'print-station-6c5d7f8b99-hh2xk.shop',
        'eu-1',
        'SYNCED',
        'SYNCED',
        'SYNCED',
        'SYNCED',
        'NOT SENT',
        istiod,
        '1.17.8',
      ])
    const routes = roll(12) === 0 ? 'NOT SENT' : 'SYNCED'
    return row([
      `${podName(roll)}.${pick(roll, SPACES)}`,
      'eu-1',
      'SYNCED',
      'SYNCED',
      'SYNCED',
      routes,
      'IGNORED',
      istiod,
      '1.23.2',
    ])
  })
  return `${[row(['NAME', 'CLUSTER', 'CDS', 'LDS', 'EDS', 'RDS', 'ECDS', 'ISTIOD', 'VERSION']), ...rows].join('\n')}\n`
}

/** The audit log of Vault, one JSON object per line: a refused read, and a policy that somebody removed at night. */
export function vaultAudit(): string {
  const roll = dice(4_407)
  const entry = (i: number, who: string, operation: string, path: string, address: string, problem?: string): string =>
    JSON.stringify({
      time: `2026-11-16T${clock(i * 11, 2)}.${two(roll(1_000_000), 6)}Z`,
      type: 'response',
      auth: {
        accessor: `hmac-sha256:${hex(roll, 24)}`,
        display_name: who,
        policies: ['default', who.split('-')[1] ?? 'ops'],
        token_type: 'service',
      },
      request: {
        id: `${hex(roll, 8)}-${hex(roll, 4)}-${hex(roll, 12)}`,
        operation,
        mount_type: 'kv',
        path,
        remote_address: address,
        remote_port: 30_000 + roll(20_000),
      },
      response: { mount_type: 'kv' },
      ...(problem === undefined ? {} : { error: problem }),
    })
  const rows = lines(66, (i) => {
    if (i === 28)
      return entry(
        i,
        'kubernetes-mailer',
        'read',
        'secret/data/payments/acquirer-key',
        '10.40.7.21',
        '1 error occurred:\n\t* permission denied\n\n',
      )
    if (i === 39) return entry(i, 'ldap-rvogel', 'delete', 'sys/policies/acl/ledger-writer', '198.51.100.23')
    if (i === 55)
      return entry(
        i,
        'kubernetes-ledger',
        'update',
        'transit/decrypt/iban',
        '10.40.7.22',
        '1 error occurred:\n\t* ciphertext or signature version is disallowed by policy (too old)\n\n',
      )
    return entry(
      i,
      `kubernetes-${pick(roll, ['basket', 'ledger', 'search'])}`,
      pick(roll, ['read', 'read', 'update']),
      `secret/data/shop/${pick(roll, NOUNS).toLowerCase()}`,
      `10.40.${roll(12)}.${roll(200)}`,
    )
  })
  return `${rows.join('\n')}\n`
}
