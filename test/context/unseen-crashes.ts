// Generators of what programs in seven languages leave behind when they break, among their usual lines, for the outputs in unseen.ts.
import { clock, dice, hex, lines, NOUNS, pick, type Dice, two, VERBS } from './held-out-dice.ts'

/** A daemon in Go that panics, with its goroutines: one of them waits for hours. */
export function goPanic(): string {
  const roll = dice(751)
  const routines = lines(46, (i) => {
    const id = 40 + i * 17
    const odd = i === 27
    const wait = odd
      ? 'semacquire, 412 minutes'
      : pick(roll, ['select', 'IO wait', 'chan receive', 'select, 2 minutes'])
    const name = `${pick(roll, VERBS)}${pick(roll, NOUNS)}`
    return [
      `goroutine ${id} [${wait}]:`,
      ...(odd
        ? [
            'sync.runtime_SemacquireRWMutex(0xc0001b2a08?, 0x0?, 0x1?)',
            '\t/usr/local/go/src/runtime/sema.go:100 +0x25',
            'example.org/ledger/internal/rates.(*Book).Swap(0xc0001b2a00, {0xc0007e4000, 0x1e, 0x20})',
            '\t/src/internal/rates/book.go:73 +0x8c',
          ]
        : [
            `example.org/ledger/internal/${pick(roll, ['queue', 'peer', 'store'])}.(*Loop).${name}(0xc000${hex(roll, 6)})`,
            `\t/src/internal/loop/${name.toLowerCase()}.go:${20 + roll(300)} +0x${hex(roll, 3)}`,
          ]),
      `created by example.org/ledger/internal/loop.Start in goroutine 1`,
      `\t/src/internal/loop/start.go:${30 + (i % 9)} +0x1a5`,
      '',
    ]
  })
  return `${[
    ...lines(
      60,
      (i) =>
        `time=2026-11-14T${clock(i * 3, 2)}.${two(roll(999), 3)}+01:00 level=INFO msg="posted" batch=${81_000 + i} entries=${20 + roll(400)} took=${4 + roll(60)}ms`,
    ),
    `time=2026-11-14T02:03:01.204+01:00 level=WARN msg="rates are old" book=night age=6h52m0s`,
    'panic: runtime error: invalid memory address or nil pointer dereference',
    '[signal SIGSEGV: segmentation violation code=0x1 addr=0x18 pc=0x7a1c2e]',
    '',
    'goroutine 8123 [running]:',
    'example.org/ledger/internal/closing.(*Day).carry(0xc000412000, 0x0, {0xc000b8e2a0, 0xa})',
    '\t/src/internal/closing/day.go:188 +0x4e',
    'example.org/ledger/internal/closing.(*Day).Close(0xc000412000, {0x9f2c40, 0xc00011a050})',
    '\t/src/internal/closing/day.go:91 +0x2f1',
    'main.runClosing(...)',
    '\t/src/cmd/ledgerd/main.go:214',
    'created by main.main in goroutine 1',
    '\t/src/cmd/ledgerd/main.go:102 +0x6d8',
    '',
    ...routines,
    'exit status 2',
  ].join('\n')}\n`
}

/** A shop in Elixir: usual requests; a cache dies for a missing key, one request lasts eighteen seconds. */
export function phoenix(): string {
  const roll = dice(752)
  return `${lines(90, (i) => {
    const at = `${clock(i * 4, 2)}.${two(roll(999), 3)}`
    const id = `request_id=F${hex(roll, 18)}`
    const asked = [
      `${at} ${id} [info] ${pick(roll, ['GET', 'POST'])} /${pick(roll, NOUNS).toLowerCase()}/${roll(9_000)}`,
      `${at} ${id} [debug] QUERY OK source="${pick(roll, NOUNS).toLowerCase()}s" db=${roll(9)}.${roll(9)}ms queue=0.${roll(9)}ms idle=${roll(900)}.${roll(9)}ms`,
      `${at} ${id} [info] Sent ${i === 70 ? '200 in 18412ms' : `200 in ${4 + roll(40)}ms`}`,
    ]
    if (i !== 44) return asked
    return [
      ...asked,
      `${at} [error] GenServer Shop.Tariff.Cache terminating`,
      '** (KeyError) key :vat not found in: %{code: "NIGHT-4", since: ~D[2026-11-14], net: Decimal.new("4.10")}',
      '    (shop 1.9.0) lib/shop/tariff/cache.ex:88: anonymous fn/2 in Shop.Tariff.Cache.index/1',
      '    (elixir 1.17.3) lib/enum.ex:1703: Enum."-map/2-lists^map/1-1-"/2',
      '    (shop 1.9.0) lib/shop/tariff/cache.ex:61: Shop.Tariff.Cache.handle_info/2',
      '    (stdlib 6.1.2) gen_server.erl:2345: :gen_server.try_handle_info/3',
      '    (stdlib 6.1.2) gen_server.erl:2433: :gen_server.handle_msg/6',
      '    (stdlib 6.1.2) proc_lib.erl:329: :proc_lib.init_p_do_apply/3',
      'Last message: :refresh',
      'State: %{table: #Reference<0.2811.4.9182>, loaded: 0, source: "s3://tariffs/2026-11-14.csv"}',
    ]
  }).join('\n')}\n`
}

/** The log of a shop in Laravel: jobs that were done, one query that met a deadlock, one setting that came from the example. */
export function laravel(): string {
  const roll = dice(753)
  const at = (i: number): string => `[2026-11-14 ${clock(i * 9, 2)}] production.`
  const trace = lines(36, (n) => {
    if (n === 9) return `#9 /srv/shop/app/Actions/ReserveStock.php(64): Illuminate\\Database\\Eloquent\\Model->save()`
    if (n === 10)
      return `#10 /srv/shop/app/Jobs/ConfirmOrder.php(41): App\\Actions\\ReserveStock->__invoke(Object(App\\Models\\Order))`
    return `#${n} /srv/shop/vendor/laravel/framework/src/Illuminate/${pick(roll, ['Database/Connection', 'Queue/Worker', 'Container/BoundMethod', 'Pipeline/Pipeline'])}.php(${100 + roll(800)}): Illuminate\\${pick(roll, NOUNS)}->${pick(roll, VERBS)}(Object(Closure))`
  })
  return `${[
    ...lines(70, (i) => `${at(i)}INFO: Job done {"job":"ConfirmOrder","order":${48_000 + i},"ms":${20 + roll(200)}} `),
    `${at(70)}NOTICE: Mail is sent by driver "log", MAIL_MAILER was taken from .env.example `,
    ...lines(
      30,
      (i) => `${at(71 + i)}INFO: Job done {"job":"ConfirmOrder","order":${48_071 + i},"ms":${20 + roll(200)}} `,
    ),
    `${at(101)}ERROR: SQLSTATE[40001]: Serialization failure: 1213 Deadlock found when trying to get lock; try restarting transaction (Connection: mysql, SQL: update \`stock\` set \`reserved\` = 14 where \`id\` = 7712) {"exception":"[object] (Illuminate\\\\Database\\\\QueryException(code: 40001): at /srv/shop/vendor/laravel/framework/src/Illuminate/Database/Connection.php:829)`,
    '[stacktrace]',
    ...trace,
    '#36 {main}',
    '"} ',
    ...lines(
      60,
      (i) =>
        `${at(102 + i)}INFO: Job done {"job":"ConfirmOrder","order":${i === 33 ? '48135,"ms":61204,"attempt":4' : `${48_102 + i},"ms":${20 + roll(200)}`}} `,
    ),
  ].join('\n')}\n`
}

function railsRequest(roll: Dice, i: number): readonly string[] {
  const at = `[2026-11-14T${clock(i * 5, 2)}.${two(roll(999_999), 6)} #4211]`
  const id = `[${hex(roll, 8)}-${hex(roll, 4)}]`
  const thing = pick(roll, NOUNS)
  const start = [
    `I, ${at}  INFO -- : ${id} Started GET "/${thing.toLowerCase()}s/${roll(9_000)}" for 10.9.0.${roll(250)} at 2026-11-14 ${clock(i * 5, 2)} +0100`,
    `I, ${at}  INFO -- : ${id} Processing by ${thing}sController#show as HTML`,
  ]
  if (i === 52)
    return [
      ...start,
      `I, ${at}  INFO -- : ${id} Completed 500 Internal Server Error in 88ms (ActiveRecord: 12.1ms (9 queries, 2 cached) | GC: 1.1ms)`,
      `F, ${at} FATAL -- : ${id}   `,
      `${id} NoMethodError (undefined method 'cents' for nil):`,
      `${id}   `,
      `${id} app/models/concerns/surcharge.rb:27:in 'Surcharge#night_part'`,
      `${id} app/models/quote.rb:141:in 'block in Quote#total'`,
      `${id} app/models/quote.rb:139:in 'Array#sum'`,
      `${id} app/controllers/quotes_controller.rb:33:in 'QuotesController#show'`,
    ]
  const views =
    i === 28
      ? 'Views: 30.2ms | ActiveRecord: 211.4ms (1902 queries, 0 cached) | GC: 88.1ms'
      : `Views: ${8 + roll(30)}.${roll(9)}ms | ActiveRecord: ${1 + roll(9)}.${roll(9)}ms (${4 + roll(9)} queries, ${roll(4)} cached) | GC: 0.${roll(9)}ms`
  if (i === 77)
    return [
      ...start,
      `I, ${at}  INFO -- : ${id} Redirected to http://shop-staging.example/login`,
      `I, ${at}  INFO -- : ${id} Completed 302 Found in 4ms`,
    ]
  return [...start, `I, ${at}  INFO -- : ${id} Completed 200 OK in ${20 + roll(60)}ms (${views})`]
}

/** The log of a shop in Rails: an exception, a page with far too many queries, a redirect to the wrong host. */
export function rails(): string {
  const roll = dice(754)
  return `${lines(94, (i) => railsRequest(roll, i)).join('\n')}\n`
}

/** A service in .NET that writes to its console: requests, one exception with its inner one, one setting that was not found. */
export function aspNet(): string {
  const roll = dice(755)
  return `${lines(96, (i) => {
    const path = `/v2/${pick(roll, NOUNS).toLowerCase()}s/${roll(9_000)}`
    if (i === 18)
      return [
        'warn: Orders.Api.Startup[0]',
        "      Section 'Payments:Retry' is not in appsettings.Production.json, 0 attempts are made",
      ]
    if (i === 59)
      return [
        'fail: Microsoft.AspNetCore.Diagnostics.ExceptionHandlerMiddleware[1]',
        '      An unhandled exception has occurred while executing the request.',
        '      Microsoft.EntityFrameworkCore.DbUpdateException: An error occurred while saving the entity changes. See the inner exception for details.',
        '       ---> Npgsql.PostgresException (0x80004005): 23514: new row for relation "vouchers" violates check constraint "vouchers_left_not_negative"',
        '         at Npgsql.Internal.NpgsqlConnector.ReadMessageLong(Boolean async, DataRowLoadingMode mode)',
        '         at Npgsql.NpgsqlDataReader.NextResult(Boolean async, Boolean isConsuming)',
        ...lines(
          12,
          (n) =>
            `         at Microsoft.EntityFrameworkCore.Update.${pick(roll, ['ReaderModificationCommandBatch', 'AffectedCountModificationCommandBatch', 'Internal.BatchExecutor'])}.Step${n}Async(IRelationalConnection connection)`,
        ),
        '         --- End of inner exception stack trace ---',
        '         at Orders.Domain.VoucherBook.RedeemAsync(VoucherCode code, Money part) in /src/Orders.Domain/VoucherBook.cs:line 118',
        '         at Orders.Api.Controllers.CheckoutController.Pay(PayRequest request) in /src/Orders.Api/Controllers/CheckoutController.cs:line 74',
        ...lines(
          9,
          (n) =>
            `         at Microsoft.AspNetCore.Mvc.Infrastructure.ControllerActionInvoker.<Invoke>g__Awaited|${n}_0(ControllerActionInvoker invoker)`,
        ),
      ]
    const took = i === 81 ? '30004.1182ms' : `${3 + roll(60)}.${two(roll(9_999), 4)}ms`
    return [
      'info: Microsoft.AspNetCore.Hosting.Diagnostics[2]',
      `      Request finished HTTP/1.1 GET http://orders-api${path} - ${i === 81 ? '204 0' : `200 ${300 + roll(4_000)}`} application/json;+charset=utf-8 ${took}`,
    ]
  }).join('\n')}\n`
}

/** A harvester in Rust that panics with a full backtrace, between lines of tracing. */
export function rustPanic(): string {
  const roll = dice(756)
  const frames = lines(44, (n) => {
    const at = `  ${String(n).padStart(2)}:     0x55d1${hex(roll, 8)} -`
    if (n === 14)
      return [
        `${at} feed::window::Window::close`,
        '                               at /build/crates/feed/src/window.rs:141:18',
      ]
    if (n === 15)
      return [
        `${at} feed::merge::Merger::flush::{{closure}}`,
        '                               at /build/crates/feed/src/merge.rs:88:30',
      ]
    const where =
      n < 14
        ? 'std::panicking'
        : pick(roll, [
            'tokio::runtime::task',
            'tokio::runtime::scheduler::multi_thread',
            'core::future::future',
            'std::thread::local',
          ])
    return [
      `${at} ${where}::${pick(roll, VERBS)}_${n}`,
      `                               at /rustc/eeb90cda1969383f56a2637cbd3037bdf598841c/library/src/${where.split('::')[1] ?? 'x'}.rs:${40 + roll(900)}:${1 + roll(40)}`,
    ]
  })
  const event = (i: number): string =>
    `2026-11-14T${clock(i * 2, 2)}.${two(roll(999_999), 6)}Z  INFO harvester::poll: source polled source=${pick(roll, ['harbour', 'weather', 'tides'])} items=${20 + roll(400)} lag_ms=${i === 47 ? 912_044 : 100 + roll(400)}`
  return `${[
    ...lines(22, event),
    '2026-11-14T02:00:43.511020Z  WARN harvester::feed: retry budget used up source=tides after=9',
    ...lines(42, (i) => event(22 + i)),
    "thread 'tokio-runtime-worker' panicked at crates/feed/src/window.rs:141:18:",
    'called `Option::unwrap()` on a `None` value',
    'stack backtrace:',
    ...frames,
    ...lines(30, (i) => event(70 + i)),
    '2026-11-14T02:03:44.118204Z ERROR harvester::main: task ended source=tides cause=JoinError::Panic(Id(918), "called `Option::unwrap()` on a `None` value", ...)',
  ].join('\n')}\n`
}

/** The tests of a package in Swift: one of them takes the whole program down, one before it was slow. */
export function swiftTest(): string {
  const roll = dice(757)
  const tests = lines(84, (i) => {
    const name = `RouteKitTests.${pick(roll, NOUNS)}Tests/test${pick(roll, NOUNS)}${i}`
    const at = `2026-11-14 ${clock(i, 2)}.${two(roll(999), 3)}`
    return [
      `Test Case '${name}' started at ${at}`,
      `Test Case '${name}' passed (${i === 39 ? '41.822' : `0.0${two(roll(99))}`} seconds)`,
    ]
  })
  return `${[
    'Building for debugging...',
    ...lines(58, (i) => `[${i + 1}/58] Compiling RouteKit ${pick(roll, NOUNS)}${pick(roll, VERBS)}${i}.swift`),
    'Build complete! (88.14s)',
    "Test Suite 'All tests' started at 2026-11-14 02:00:00.104",
    ...tests,
    "Test Case 'RouteKitTests.DetourTests/testClosedBridge' started at 2026-11-14 02:01:24.901",
    'Swift/ContiguousArrayBuffer.swift:600: Fatal error: Index out of range',
    '',
    '*** Signal 4: Backtracing from 0x7f1c0a2b41d0... done ***',
    '',
    '*** Program crashed: Illegal instruction at 0x00007f1c0a2b41d0 ***',
    '',
    'Thread 0 crashed:',
    '',
    '0 [system] _assertionFailure(_:_:file:line:flags:) + 353 in libswiftCore.so',
    '1 [inlined] [system] Array._checkSubscript(_:wasNativeTypeChecked:) in libswiftCore.so',
    '2 RoutePlanner.detour(around:from:) + 412 in RouteKitPackageTests.xctest at /src/Sources/RouteKit/RoutePlanner.swift:212:29',
    '',
    '   210│     let legs = plan.legs(around: bridge)',
    '   211│     // the first leg leads to the bridge',
    '   212│     let next = legs[legs.startIndex + 1]',
    '      │                             ▲',
    '   213│     return join(next, from: start)',
    '',
    '3 DetourTests.testClosedBridge() + 188 in RouteKitPackageTests.xctest at /src/Tests/RouteKitTests/DetourTests.swift:54:31',
    ...lines(
      18,
      (i) =>
        `${i + 4} [system] XCTestCase.${pick(roll, ['invokeTest', 'perform', 'run'])}_${i}() + ${20 + roll(400)} in libXCTest.so`,
    ),
    '',
    'Registers:',
    '',
    ...lines(
      16,
      (i) =>
        `r${String(i).padEnd(3)} 0x${hex(roll, 16)}  ${hex(roll, 2)} ${hex(roll, 2)} ${hex(roll, 2)} ${hex(roll, 2)} ${hex(roll, 2)} ${hex(roll, 2)}`,
    ),
    '',
    'Images (31 omitted):',
    '',
    '55e0c1a00000–55e0c1f48000 9f2c41ab RouteKitPackageTests.xctest /src/.build/debug/RouteKitPackageTests.xctest',
    'error: Exited with unexpected signal code 4',
  ].join('\n')}\n`
}
