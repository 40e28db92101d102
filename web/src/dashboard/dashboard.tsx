import { useRoute } from '../route';
import { Frame } from '../parts/frame';
import { Explorer } from './explorer';
import { LiveRun } from './live_run';
import { Runs } from './runs';
import { WeatherPage } from './weather_page';

const pages: [string, string, string[]][] = [
  ['#/runs', 'Runs', ['runs', 'run']],
  ['#/plan', 'Plan', ['plan']],
  ['#/weather', 'Weather', ['weather']],
];

export function Dashboard() {
  const route = useRoute();
  const nav = (
    <nav aria-label="Pages">
      {pages.map(([hash, word, own]) => (
        <a key={hash} href={hash} aria-current={own.includes(route.page) ? 'page' : undefined}>
          {word}
        </a>
      ))}
    </nav>
  );
  return (
    <Frame nav={nav}>
      {route.page === 'runs' && <Runs />}
      {route.page === 'run' && <LiveRun key={route.name} name={route.name} />}
      {route.page === 'plan' && <Explorer />}
      {route.page === 'weather' && <WeatherPage />}
    </Frame>
  );
}
