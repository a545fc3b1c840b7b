// Generators of two outputs for fresh.ts that no shared program prints: a planner of a harbour, and the log of a .NET service.
import { clock, dice, hex, lines, NOUNS, pick, two, VERBS } from './held-out-dice.ts'

const SHIPS = [
  'Aurelia',
  'Bergen Star',
  'Calypso',
  'Dagny',
  'Elbe Trader',
  'Fjordland',
  'Gudrun',
  'Hanse Spirit',
  'Ilka',
  'Juno',
] as const

/** A planner that gives berths to ships: calls that fit, one that does not, a crane that is out, one ship too deep. */
export function berthPlan(): string {
  const roll = dice(4_801)
  const calls = lines(148, (i) => {
    const at = `${two(16 + Math.floor(i / 30))}.11. ${clock((i % 30) * 2_400, 0).slice(0, 5)}`
    const ship = `${pick(roll, SHIPS)} ${i}`
    const berth = `B${1 + roll(9)}`
    if (i === 55)
      return [
        `~ ${at}  NORDIC HELENE  wants B4  draught 14.9 m`,
        '    !! deeper than B4 at low water (13.6 m), moved to outer road',
        '    !! waits 19 h 40 min for the tide',
      ]
    if (i === 76) return [`~ ${at}  crane C3 marked as out until further notice (hoist brake)`]
    if (i === 98) return [`~ ${at}  ${ship}  -> ${berth}  cranes 0  moves 412`]
    if (i === 113) return [`~ ${at}  ${ship}  x  no berth of 366 m in the window, call not planned`]
    return `~ ${at}  ${ship}  -> ${berth}  cranes ${1 + roll(4)}  moves ${120 + roll(900)}${roll(9) === 0 ? '  (shift by 20 min)' : ''}`
  })
  return `${[
    'berthplan 3.2  week 47  tide table 2026-b  9 berths, 14 cranes',
    '* reading calls ........ 148',
    '* reading pilots ....... 22 on duty',
    ...calls,
    '= placed 145, on the road 1, not planned 1, notes 1',
    '= quay used 71 %, cranes used 64 %, longest wait 19 h 40 min',
    '= plan written, not released: 2 calls need a decision',
  ].join('\n')}\n`
}

/** The log of a .NET service: an aggregate of two exceptions in the middle, a slow request, a setting that surprised. */
export function dotnetService(): string {
  const roll = dice(4_802)
  const entries = lines(104, (i) => {
    const at = `2026-11-16T${clock(i * 4, 10)}.${two(roll(1_000), 3)}Z`
    if (i === 12)
      return [
        `${at} info: Courier.Startup[3]`,
        "      Using delivery gateway 'https://sandbox.couriers.example' (from appsettings.Local.json)",
      ]
    if (i === 47) return aggregate(at)
    if (i === 73)
      return [
        `${at} info: Microsoft.AspNetCore.Hosting.Diagnostics[2]`,
        '      Request finished HTTP/1.1 POST http://courier.internal/api/labels/batch - 200 - application/json 58211.4018ms',
      ]
    const noun = pick(roll, NOUNS)
    if (roll(3) === 0)
      return [
        `${at} info: Courier.Jobs.${noun}Job[${roll(20)}]`,
        `      ${pick(roll, VERBS)} of ${20 + roll(400)} ${noun.toLowerCase()}s done in ${2 + roll(40)}.${two(roll(100))} ms`,
      ]
    if (roll(9) === 0)
      return [
        `${at} warn: Microsoft.EntityFrameworkCore.Query[20504]`,
        '      Compiling a query which loads related collections for more than one collection navigation.',
      ]
    return [
      `${at} info: Microsoft.AspNetCore.Hosting.Diagnostics[2]`,
      `      Request finished HTTP/1.1 GET http://courier.internal/api/${noun.toLowerCase()}s/${hex(roll, 8)} - 200 - application/json ${3 + roll(60)}.${two(roll(10_000), 4)}ms`,
    ]
  })
  return `${entries.join('\n')}\n`
}

function aggregate(at: string): string[] {
  return [
    `${at} fail: Courier.Jobs.DispatchJob[9]`,
    '      Dispatch of tour 4471 stopped',
    '      System.AggregateException: One or more errors occurred. (The SSL connection could not be established, see inner exception.) (Tour 4471 has no depot.)',
    '       ---> System.Net.Http.HttpRequestException: The SSL connection could not be established, see inner exception.',
    '       ---> System.Security.Authentication.AuthenticationException: The remote certificate is invalid because of errors in the certificate chain: NotTimeValid',
    '         at System.Net.Security.SslStream.SendAuthResetSignal(ReadOnlySpan`1 alert, ExceptionDispatchInfo exception)',
    '         at System.Net.Security.SslStream.CompleteHandshake(SslAuthenticationOptions sslAuthenticationOptions)',
    '         at System.Net.Http.ConnectHelper.EstablishSslConnectionAsync(SslClientAuthenticationOptions sslOptions, HttpRequestMessage request, Boolean async, Stream stream, CancellationToken cancellationToken)',
    '         --- End of inner exception stack trace ---',
    '         at System.Net.Http.HttpConnectionPool.ConnectAsync(HttpRequestMessage request, Boolean async, CancellationToken cancellationToken)',
    '         at System.Net.Http.HttpClient.<SendAsync>g__Core|83_0(HttpRequestMessage request, HttpCompletionOption completionOption, CancellationTokenSource cts)',
    '         at Courier.Gateways.TourGateway.PushAsync(Tour tour, CancellationToken stop) in /src/Courier/Gateways/TourGateway.cs:line 64',
    '         --- End of inner exception stack trace ---',
    '         at System.Threading.Tasks.Task.WhenAll(Task[] tasks)',
    '         at Courier.Jobs.DispatchJob.RunAsync(CancellationToken stop) in /src/Courier/Jobs/DispatchJob.cs:line 41',
    '       ---> (Inner Exception #1) Courier.Domain.TourException: Tour 4471 has no depot.',
    '         at Courier.Domain.Tour.Start() in /src/Courier/Domain/Tour.cs:line 119<---',
    '',
  ]
}
