// How many cases a property looks at, or how long a text is: a fifth in `npm test`, all in `npm run test:long`, which runs these files again.
export function runs(all: number): number {
  return process.env['TERRET_RUNS'] === 'all' ? all : Math.ceil(all / 5)
}
