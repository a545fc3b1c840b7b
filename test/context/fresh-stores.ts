// Generators of what databases, storage, web servers and job queues print, for the outputs in fresh.ts.
import { clock, dice, hex, lines, NOUNS, pick, two, VERBS } from './held-out-dice.ts'

/** The process list of MySQL: an ALTER waits for a session that has slept in its transaction, and readers wait for the ALTER. */
export function processList(): string {
  const roll = dice(4_501)
  const widths = [8, 10, 20, 6, 9, 6, 33, 92] as const
  const rule = `+${widths.map((width) => '-'.repeat(width + 2)).join('+')}+`
  const row = (cells: readonly string[]): string =>
    `|${cells.map((cell, i) => ` ${cell.padEnd(widths[i] ?? 8)} `).join('|')}|`
  const rows = lines(104, (i) => {
    const id = String(884_000 + i * 7)
    if (i === 41)
      return row([
        id,
        'migrate',
        '10.20.1.4:40118',
        'shop',
        'Query',
        '2871',
        'Waiting for table metadata lock',
        'ALTER TABLE parcels ADD COLUMN customs_code VARCHAR(12) NULL',
      ])
    if (i === 67)
      return row([
        id,
        'report',
        '10.20.9.31:51822',
        'shop',
        'Query',
        '2904',
        'Sending data',
        'SELECT p.* FROM parcels p, parcel_events e WHERE e.at > NOW() - INTERVAL 1 YEAR',
      ])
    const host = `10.20.${1 + roll(6)}.${2 + roll(60)}:${40_000 + roll(20_000)}`
    if (i > 41 && roll(5) === 0)
      return row([
        id,
        'shop',
        host,
        'shop',
        'Query',
        String(60 + roll(600)),
        'Waiting for table metadata lock',
        `SELECT id, state FROM parcels WHERE id = ${roll(900_000)}`,
      ])
    if (roll(9) === 0)
      return row([
        id,
        'shop',
        host,
        'shop',
        'Query',
        '0',
        'executing',
        `UPDATE ${pick(roll, NOUNS).toLowerCase()}s SET seen = 1 WHERE id = ${roll(900_000)}`,
      ])
    return row([id, 'shop', host, 'shop', 'Sleep', String(roll(50)), '', 'NULL'])
  })
  return `${[rule, row(['Id', 'User', 'Host', 'db', 'Command', 'Time', 'State', 'Info']), rule, ...rows, rule, '104 rows in set, 1 warning (0.00 sec)'].join('\n')}\n`
}

/** pg_restore --verbose: three objects could not be made, far apart from one another. */
export function pgRestore(): string {
  const roll = dice(4_502)
  const tables = Array.from({ length: 96 }, (_, i) => `${pick(roll, NOUNS).toLowerCase()}_${pick(roll, VERBS)}_${i}`)
  const made = tables.flatMap((table, i) => {
    if (i === 8)
      return [
        'pg_restore: creating EXTENSION "pg_partman"',
        'pg_restore: while PROCESSING TOC:',
        'pg_restore: from TOC entry 3; 3079 16418 EXTENSION pg_partman (no owner)',
        'pg_restore: error: could not execute query: ERROR:  extension "pg_partman" is not available',
        'DETAIL:  Could not open extension control file "/usr/share/postgresql/16/extension/pg_partman.control": No such file or directory.',
        'Command was: CREATE EXTENSION IF NOT EXISTS pg_partman WITH SCHEMA partman;',
      ]
    return [`pg_restore: creating TABLE "public.${table}"`, `pg_restore: creating SEQUENCE "public.${table}_id_seq"`]
  })
  const filled = tables.map((table) => `pg_restore: processing data for table "public.${table}"`)
  const keys = tables.flatMap((table, i) => {
    if (i === 17)
      return [
        'pg_restore: creating CONSTRAINT "public.payout payout_reference_key"',
        'pg_restore: from TOC entry 5126; 2606 41877 CONSTRAINT payout payout_reference_key shop',
        'pg_restore: error: could not execute query: ERROR:  could not create unique index "payout_reference_key"',
        'DETAIL:  Key (reference)=(PO-2026-118204) is duplicated.',
        'Command was: ALTER TABLE ONLY public.payout',
        '    ADD CONSTRAINT payout_reference_key UNIQUE (reference);',
      ]
    if (i === 58)
      return [
        'pg_restore: from TOC entry 5311; 2606 42019 FK CONSTRAINT payout payout_ledger_fkey shop',
        'pg_restore: error: could not execute query: ERROR:  there is no unique constraint matching given keys for referenced table "ledger"',
      ]
    return [`pg_restore: creating CONSTRAINT "public.${table} ${table}_pkey"`]
  })
  return `${['pg_restore: connecting to database for restore', ...made, ...filled, ...keys, 'pg_restore: warning: errors ignored on restore: 3'].join('\n')}\n`
}

/** Flyway: many migrations with harmless notices, a long one in the middle, and the last one breaks. */
export function flyway(): string {
  const roll = dice(4_503)
  const steps = lines(142, (i) => {
    const step = `Migrating schema "shop" to version "${61 + i} - ${pick(roll, VERBS)} ${pick(roll, NOUNS).toLowerCase()} ${pick(roll, ['index', 'column', 'view', 'grants'])}"`
    if (i === 64)
      return [
        'Migrating schema "shop" to version "125 - fill parcel weights"',
        'DB: 41880233 rows updated in 38 min 12 s, table was locked',
      ]
    if (i === 90)
      return [
        `${step} [out of order]`,
        'WARNING: DB: there is already a transaction in progress (SQL State: 25001 - Error Code: 0)',
      ]
    if (roll(6) === 0)
      return [
        step,
        `WARNING: DB: relation "${pick(roll, NOUNS).toLowerCase()}_idx_${i}" already exists, skipping (SQL State: 42P07 - Error Code: 0)`,
      ]
    return step
  })
  return `${[
    'Flyway Community Edition 10.20.1 by Redgate',
    'Database: jdbc:postgresql://db-2.internal:5432/shop (PostgreSQL 16.4)',
    'Successfully validated 231 migrations (execution time 00:00.412s)',
    'Current version of schema "shop": 60',
    ...steps,
    'Migrating schema "shop" to version "203 - one open basket per customer"',
    'ERROR: Migration of schema "shop" to version "203 - one open basket per customer" failed! Changes successfully rolled back.',
    'ERROR: Script V203__one_open_basket_per_customer.sql failed',
    '-------------------------------------------------------',
    'SQL State  : 23505',
    'Error Code : 0',
    'Message    : ERROR: could not create unique index "basket_one_open"',
    '  Detail: Key (customer_id)=(771940) is duplicated.',
    'Location   : db/migration/V203__one_open_basket_per_customer.sql (/app/db/migration/V203__one_open_basket_per_customer.sql)',
    'Line       : 4',
    'Statement  : Run Flyway with -X option to see the actual statement causing the problem',
  ].join('\n')}\n`
}

/** ceph osd tree: twelve hosts with twelve disks; one disk is down, one carries less, one is of another class. */
export function osdTree(): string {
  const roll = dice(4_504)
  let id = -1
  const hosts = Array.from({ length: 12 }, (_, host) => [
    `${String(-3 - host * 2).padStart(3)}         174.63226      host stor-${two(host + 1)}`,
    ...lines(12, () => {
      id += 1
      const name = `osd.${id}`
      const disk = (kind: string, size: string, state: string, weight: string): string =>
        `${String(id).padStart(3)}    ${kind}   ${size}          ${name.padEnd(12)}  ${state.padEnd(6)}   ${weight}  1.00000`
      if (id === 57) return disk('hdd', '14.55269', 'down', '      0')
      if (id === 86) return disk('hdd', '14.55269', 'up', '0.34999')
      if (id === 101) return disk('ssd', ' 1.74660', 'up', '1.00000')
      return disk('hdd', '14.55269', 'up', roll(20) === 0 ? '0.95001' : '1.00000')
    }),
  ]).flat()
  return `${['ID   CLASS  WEIGHT      TYPE NAME        STATUS  REWEIGHT  PRI-AFF', ' -1         2095.58711  root default', ...hosts].join('\n')}\n`
}

/** A log of IIS in the W3C form: one page breaks in its script, one request ran into the limit of two minutes. */
export function iis(): string {
  const roll = dice(4_505)
  const agents = [
    'Mozilla/5.0+(Windows+NT+10.0;+Win64;+x64)+AppleWebKit/537.36',
    'Mozilla/5.0+(iPhone;+CPU+iPhone+OS+18_1)',
    'ShopScanner/2.4',
  ] as const
  const rows = lines(152, (i) => {
    const at = `2026-11-16 ${clock(i * 6, 9)}`
    const from = `10.8.${roll(4)}.${2 + roll(250)}`
    if (i === 60)
      return `${at} 10.8.0.10 POST /orders/close.asp |112|800a0cb3|Current_Recordset_does_not_support_updating 443 SHOP\\kbauer 10.8.2.41 ${agents[0]} - 500 0 0 412`
    if (i === 88)
      return `${at} 10.8.0.10 GET /reports/stock-age.aspx depot=7 443 SHOP\\wlang 10.8.3.17 ${agents[0]} - 500 0 121 120047`
    if (i === 117) return `${at} 10.8.0.10 GET /web.config.bak - 443 - 192.0.2.66 python-requests/2.31 - 200 0 0 11`
    const page = `/${pick(roll, ['orders', 'stock', 'parcels'])}/${pick(roll, VERBS)}.aspx`
    const status = pick(roll, ['200 0 0', '200 0 0', '200 0 0', '304 0 0', '302 0 0', '404 0 2'])
    return `${at} 10.8.0.10 ${pick(roll, ['GET', 'GET', 'POST'])} ${page} id=${roll(90_000)} 443 ${roll(3) === 0 ? '-' : `SHOP\\user${roll(60)}`} ${from} ${pick(roll, agents)} - ${status} ${5 + roll(900)}`
  })
  return `${[
    '#Software: Microsoft Internet Information Services 10.0',
    '#Version: 1.0',
    '#Date: 2026-11-16 09:00:00',
    '#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken',
    ...rows,
  ].join('\n')}\n`
}

/** The production log of Rails: a page of fourteen seconds, one that raised, and a form that was not accepted. */
export function rails(): string {
  const roll = dice(4_506)
  const requests = lines(58, (i) => {
    const id = `${hex(roll, 8)}-${hex(roll, 4)}-4${hex(roll, 3)}-9${hex(roll, 3)}-${hex(roll, 12)}`
    const noun = pick(roll, ['Order', 'Invoice', 'Parcel', 'Voucher', 'Refund', 'Supplier'])
    const path = `${noun.toLowerCase()}s/${1_000 + roll(80_000)}`
    const say = (n: number, level: string, text: string): string =>
      `${level[0] ?? 'I'}, [2026-11-16T${clock(i * 3)}.${two(120_000 + n * 917 + roll(900), 6)} #2214]  ${level} -- : [${id}] ${text}`
    const start = [
      say(0, 'INFO', `Started GET "/${path}" for 10.1.${roll(9)}.${roll(250)} at 2026-11-16 ${clock(i * 3)} +0100`),
      say(1, 'INFO', `Processing by ${noun}sController#show as HTML`),
      say(2, 'INFO', `  Parameters: {"id"=>"${path.split('/')[1] ?? ''}"}`),
    ]
    if (i === 21)
      return [
        ...start,
        say(3, 'INFO', '  Rendered stock/_history.html.erb (Duration: 14207.7ms | Allocations: 9182733)'),
        say(4, 'INFO', 'Completed 200 OK in 14388ms (Views: 101.5ms | ActiveRecord: 14150.3ms | Allocations: 9204417)'),
      ]
    if (i === 49)
      return [
        ...start,
        say(3, 'WARN', "Can't verify CSRF token authenticity."),
        say(4, 'INFO', 'Completed 422 Unprocessable Content in 4ms (ActiveRecord: 0.0ms | Allocations: 1204)'),
      ]
    if (i === 34)
      return [
        ...start,
        say(3, 'INFO', 'Completed 500 Internal Server Error in 48ms (ActiveRecord: 9.1ms | Allocations: 8812)'),
        say(4, 'FATAL', '  '),
        say(5, 'FATAL', "ActionView::Template::Error (undefined method `strftime' for nil):"),
        say(6, 'FATAL', '    11: <p class="due">'),
        say(7, 'FATAL', "    12:   <%= voucher.expires_on.strftime('%d.%m.%Y') %>"),
        say(8, 'FATAL', '  '),
        say(9, 'FATAL', 'app/views/vouchers/show.html.erb:12'),
        say(10, 'FATAL', "app/controllers/concerns/traced.rb:8:in `around'"),
      ]
    const took = 12 + roll(90)
    return [
      ...start,
      say(
        3,
        'INFO',
        `Completed 200 OK in ${took}ms (Views: ${roll(took)}.${roll(9)}ms | ActiveRecord: ${1 + roll(9)}.${roll(9)}ms | Allocations: ${4_000 + roll(9_000)})`,
      ),
    ]
  })
  return `${requests.join('\n')}\n`
}

/** A worker of Celery: a task with two exceptions one behind the other, one that took seven minutes, one process killed. */
export function celery(): string {
  const roll = dice(4_507)
  const rows = lines(112, (i) => {
    const at = `2026-11-16 ${clock(i * 5, 3)},${two(roll(1_000), 3)}`
    const task = `shop.tasks.${pick(roll, VERBS)}_${pick(roll, NOUNS).toLowerCase()}[${hex(roll, 8)}-${hex(roll, 4)}-4${hex(roll, 3)}-9${hex(roll, 3)}-${hex(roll, 12)}]`
    if (i === 46) return celeryTrace(at)
    if (i === 69)
      return `[${at}: INFO/ForkPoolWorker-2] Task shop.tasks.export_catalog[91c2f0aa-77d1-4c0e-93ab-0be4c1f7d2aa] succeeded in 437.8120441s: {'rows': 0, 'skipped': 118204}`
    if (i === 91)
      return [
        `[${at}: ERROR/MainProcess] Process 'ForkPoolWorker-5' pid:4177 exited with 'signal 9 (SIGKILL)'`,
        `[${at}: ERROR/MainProcess] Task handler raised error: WorkerLostError('Worker exited prematurely: signal 9 (SIGKILL) Job: 2291.')`,
      ]
    return [
      `[${at}: INFO/MainProcess] Task ${task} received`,
      `[${at}: INFO/ForkPoolWorker-${1 + roll(6)}] Task ${task} succeeded in ${roll(3)}.${two(roll(9_999_999), 7)}s: None`,
    ]
  })
  return `${[
    ' -------------- celery@worker-3 v5.4.0 (opalescent)',
    '--- ***** ----- ',
    '- ** ---------- .> transport:   amqp://shop:**@mq.internal:5672//',
    '- ** ---------- .> concurrency: 6 (prefork)',
    ...rows,
  ].join('\n')}\n`
}

function celeryTrace(at: string): string[] {
  return [
    `[${at}: ERROR/ForkPoolWorker-4] Task shop.tasks.price_basket[5e01a7c3-4b1f-4d72-9c11-9a2f10c6e7d4] raised unexpected: TariffMissing('no tariff for zone None')`,
    'Traceback (most recent call last):',
    '  File "/srv/shop/tariffs/lookup.py", line 71, in zone_of',
    '    return ZONES[address.country][address.postal_code[:2]]',
    '           ~~~~~~~~~~~~~~~~~~~~~~^^^^^^^^^^^^^^^^^^^^^^^^^',
    "KeyError: 'XK'",
    '',
    'The above exception was the direct cause of the following exception:',
    '',
    'Traceback (most recent call last):',
    '  File "/srv/venv/lib/python3.12/site-packages/celery/app/trace.py", line 453, in trace_task',
    '    R = retval = fun(*args, **kwargs)',
    '                 ^^^^^^^^^^^^^^^^^^^^',
    '  File "/srv/venv/lib/python3.12/site-packages/celery/app/trace.py", line 736, in __protected_call__',
    '    return self.run(*args, **kwargs)',
    '           ^^^^^^^^^^^^^^^^^^^^^^^^^',
    '  File "/srv/shop/tasks.py", line 118, in price_basket',
    '    return price(basket, zone_of(basket.address))',
    '  File "/srv/shop/tariffs/lookup.py", line 73, in zone_of',
    "    raise TariffMissing(f'no tariff for zone {zone}') from missing",
    'shop.tariffs.TariffMissing: no tariff for zone None',
  ]
}
