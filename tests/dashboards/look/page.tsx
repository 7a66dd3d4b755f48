// Draws a dashboard with the components that Grafana itself uses. See render.py.
import React from 'react';
import { createRoot } from 'react-dom/client';
import { of } from 'rxjs';
import {
  applyFieldOverrides, cacheFieldDisplayNames, createTheme, dateTime, FieldType, getDisplayProcessor, LoadingState, reduceField, renderMarkdown,
  standardEditorsRegistry, standardFieldConfigEditorRegistry, standardTransformers, standardTransformersRegistry,
  ThemeContext, toDataFrame, transformDataFrame, type DataFrame,
} from '@grafana/data';
import {
  BigValue, BigValueColorMode, BigValueGraphMode, BigValueJustifyMode, BigValueTextMode, GlobalStyles, PanelChrome, TimeSeries,
} from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import 'uplot/dist/uPlot.min.css';

const bundle = (window as any).__BUNDLE__;
const UNIT = 38;  // Grafana: 30 px a unit and 8 px between panels
const WIDTH = 1600;
const theme = createTheme({ colors: { mode: bundle.mode } });

// The registry of the core is not published: the properties that a field can have, each taken as it is.
const FIELD_PROPERTIES = ['unit', 'min', 'max', 'decimals', 'displayName', 'color', 'thresholds', 'mappings', 'noValue', 'links', 'filterable'];
const CUSTOM_PROPERTIES = [
  'width', 'minWidth', 'align', 'cellOptions', 'wrapHeaderText', 'scaleDistribution', 'hidden', 'drawStyle', 'lineStyle', 'lineWidth', 'fillOpacity', 'stacking', 'thresholdsStyle',
  'axisSoftMax', 'axisSoftMin', 'hideFrom', 'showPoints', 'gradientMode', 'lineInterpolation', 'spanNulls', 'pointSize', 'barAlignment',
];
const property = (path: string, isCustom = false) => ({
  id: isCustom ? `custom.${path}` : path, path, isCustom, name: path, settings: {},
  editor: (() => null) as any, override: (() => null) as any, process: (value: any) => value, shouldApply: () => true,
});
standardEditorsRegistry.setInit(() => []);
standardFieldConfigEditorRegistry.setInit(() => FIELD_PROPERTIES.map((path) => property(path)) as any);
standardTransformersRegistry.setInit(() => [...new Map(Object.values(standardTransformers).map((each: any) => [each.id, each])).values()].map((transformation: any) => (
  { id: transformation.id, name: transformation.name, transformation: async () => transformation }) as any));
const customProperties = { get: () => undefined } as any;
customProperties.getIfExists = (id: string) => {
  const path = id.replace(/^custom\./, '');
  return FIELD_PROPERTIES.includes(path) && !id.startsWith('custom.') ? property(path) : CUSTOM_PROPERTIES.includes(path) ? property(path, true) : undefined;
};
customProperties.list = () => [...FIELD_PROPERTIES.map((path) => property(path)), ...CUSTOM_PROPERTIES.map((path) => property(path, true))];

const fill = (text: string) => text.replace(/\$\{?(\w+)(?::\w+)?\}?/g, (whole, name) => bundle.shown[name] ?? whole);
const legendOf = (format: string, metric: Record<string, string>) => format.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, key) => metric[key] ?? '');

function frames(panel: any): DataFrame[] {
  const asTables = panel.targets.filter((target: any) => target.format === 'table').length;
  return panel.targets.flatMap((target: any) => {
    const result = bundle.results[`${panel.id}:${target.refId}`];
    if (!result) return [];
    if (target.format === 'table') {
      const keys = [...new Set(result.result.flatMap((row: any) => Object.keys(row.metric)))].sort() as string[];
      if (!result.result.length) return [];
      return [toDataFrame({ refId: target.refId, fields: [
        { name: 'Time', type: FieldType.time, values: result.result.map((row: any) => row.value[0] * 1000) },
        ...keys.map((key) => ({ name: key, type: FieldType.string, values: result.result.map((row: any) => row.metric[key] ?? '') })),
        { name: asTables > 1 ? `Value #${target.refId}` : 'Value', type: FieldType.number, values: result.result.map((row: any) => parseFloat(row.value[1])) },
      ] })];
    }
    return result.result.map((row: any) => {
      const points = result.resultType === 'matrix' ? row.values : [row.value];
      const { __name__, ...labels } = row.metric;
      const name = target.legendFormat && target.legendFormat !== '__auto' ? legendOf(target.legendFormat, row.metric)
        : Object.entries(labels).map(([key, value]) => `${key}="${value}"`).join(', ') || 'Value';
      return toDataFrame({ refId: target.refId, fields: [
        { name: 'Time', type: FieldType.time, values: points.map((point: any) => point[0] * 1000), config: { interval: bundle.step * 1000 } },
        { name: 'Value', type: FieldType.number, labels, values: points.map((point: any) => parseFloat(point[1])), config: { displayNameFromDS: name } },
      ] });
    });
  });
}

function prepared(panel: any, transformed: DataFrame[]) {
  const fieldConfig = JSON.parse(JSON.stringify(panel.fieldConfig ?? { defaults: {}, overrides: [] }));
  fieldConfig.defaults.color ??= { mode: panel.type === 'timeseries' ? 'palette-classic' : 'thresholds' };
  const base = (thresholds: any) => thresholds?.steps?.forEach((step: any) => { if (step.value === null) step.value = -Infinity; });
  base(fieldConfig.defaults.thresholds);
  fieldConfig.overrides.forEach((override: any) => override.properties.forEach((item: any) => item.id === 'thresholds' && base(item.value)));
  const data = applyFieldOverrides({
    data: transformed, fieldConfig, fieldConfigRegistry: customProperties, replaceVariables: fill as any, theme, timeZone: 'utc',
  });
  cacheFieldDisplayNames(data);
  data.forEach((frame, index) => frame.fields.forEach((field) => {
    if (panel.type === 'timeseries' && field.type === FieldType.number) field.state = { ...field.state, seriesIndex: index };
    field.display = getDisplayProcessor({ field, theme, timeZone: 'utc' });
    if (field.config.links) field.getLinks = () => field.config.links!.map((link: any) => ({ title: link.title, href: '#', target: undefined, origin: field }));
  }));
  return data;
}

function Stat({ panel, data, width, height }: any) {
  const field = data[0].fields.find((candidate: any) => candidate.type === FieldType.number);
  const value = reduceField({ field, reducers: ['lastNotNull'] }).lastNotNull;
  const options = panel.options ?? {};
  const sparkline = options.graphMode !== 'none' && data[0].length > 1 ? { y: field, x: data[0].fields[0] } : undefined;
  return <BigValue theme={theme} width={width} height={height} value={field.display(value)} sparkline={sparkline as any}
    colorMode={options.colorMode ?? BigValueColorMode.Value} graphMode={options.graphMode ?? BigValueGraphMode.Area}
    textMode={options.textMode === 'value' ? BigValueTextMode.Value : BigValueTextMode.Auto} justifyMode={options.justifyMode ?? BigValueJustifyMode.Auto} />;
}

function Body({ panel, width, height }: any) {
  const [transformed, setTransformed] = React.useState<DataFrame[] | null>(null);
  React.useEffect(() => {
    const subscription = transformDataFrame(panel.transformations ?? [], frames(panel)).subscribe(setTransformed);
    return () => subscription.unsubscribe();
  }, []);
  if (transformed === null) return null;
  if (!transformed.some((frame) => frame.length)) {
    const none = panel.fieldConfig?.defaults?.noValue ?? 'No data';
    return panel.type === 'stat'
      ? <BigValue theme={theme} width={width} height={height} value={{ text: none, numeric: NaN, color: theme.colors.text.secondary }} colorMode={BigValueColorMode.None}
          graphMode={BigValueGraphMode.None} textMode={BigValueTextMode.Value} justifyMode={BigValueJustifyMode.Auto} />
      : <div style={{ height, display: 'flex', alignItems: 'center', justifyContent: 'center', color: theme.colors.text.secondary }}>{none}</div>;
  }
  const data = prepared(panel, transformed);
  if (panel.type === 'stat') return <Stat panel={panel} data={data} width={width} height={height} />;
  if (panel.type === 'table') return <TableNG data={data[0]} width={width} height={height} structureRev={1} noHeader={false} sortBy={panel.options?.sortBy} cellHeight={panel.options?.cellHeight} {...({} as any)} />;
  if (panel.type === 'timeseries') {
    const range = { from: dateTime(bundle.from * 1000), to: dateTime(bundle.to * 1000), raw: { from: 'now-1h', to: 'now' } };
    const legend = { displayMode: 'list', placement: 'bottom', calcs: [], showLegend: true, ...panel.options?.legend };
    return <TimeSeries frames={data} width={width} height={height} timeRange={range as any} timeZone="utc" legend={legend as any} />;
  }
  return <div style={{ padding: 20 }}>{panel.type}: the plugin of this type is not published</div>;
}

function Panel({ panel }: any) {
  const { x, y, w, h } = panel.gridPos;
  const width = Math.floor((w / 24) * WIDTH) - 8;
  const height = h * UNIT - 8;
  const style: React.CSSProperties = { position: 'absolute', left: (x / 24) * WIDTH, top: y * UNIT, width, height };
  if (panel.type === 'row') {
    return <div style={{ ...style, height: UNIT - 8, fontSize: 17, lineHeight: '30px', fontWeight: 500 }}>{'\u2304\u2002'}{fill(panel.title)}</div>;
  }
  if (panel.type === 'text') return <div style={style} dangerouslySetInnerHTML={{ __html: renderMarkdown(panel.options.content) }} />;
  return <div style={style}>
    <PanelChrome title={fill(panel.title)} description={panel.description} width={width} height={height} loadingState={LoadingState.Done}>
      {(innerWidth: number, innerHeight: number) => <Body panel={panel} width={innerWidth} height={innerHeight} />}
    </PanelChrome>
  </div>;
}

class Contained extends React.Component<any, any> {
  state: any = {};
  static getDerivedStateFromError(error: any) { return { error }; }
  render() { return this.state.error ? <pre style={{ color: 'red' }}>{String(this.state.error.stack)}</pre> : this.props.children; }
}

document.body.style.background = theme.colors.background.canvas;
document.body.style.color = theme.colors.text.primary;
document.body.style.fontFamily = theme.typography.fontFamily;
document.body.style.fontSize = '14px';
createRoot(document.getElementById('root')!).render(
  <ThemeContext.Provider value={theme}>
    <GlobalStyles />
    {bundle.dashboard.panels.map((panel: any) => <Contained key={panel.id}><Panel panel={panel} /></Contained>)}
  </ThemeContext.Provider>,
);
