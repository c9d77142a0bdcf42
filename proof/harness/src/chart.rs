//! Line charts as SVG.

use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 44.0;

/// A row of names under the chart, and a letter in it.
const ROW: f64 = 16.0;
const LETTER: f64 = 6.6;

/// Told apart also by those who see few colours (Okabe and Ito).
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// One line.
pub struct Series {
    pub name: String,
    /// Its colour, by number.
    pub colour: usize,
    /// What is computed is dashed, what was measured is not.
    pub dashed: bool,
    /// Each measured place has a mark.
    pub marked: bool,
    pub points: Vec<(f64, f64)>,
}

/// A chart.
pub struct Chart {
    pub title: String,
    pub x: String,
    pub y: String,
    /// Values beyond are cut off; `None`: all are there.
    pub x_to: Option<f64>,
    pub series: Vec<Series>,
}

impl Chart {
    /// The whole file.
    pub fn svg(&self) -> String {
        let all = || self.series.iter().flat_map(|series| series.points.iter());
        let x_to = self.x_to.unwrap_or_else(|| all().map(|(x, _)| *x).fold(0.0, f64::max));
        let inside = || all().filter(|(x, _)| *x <= x_to);
        let (x_step, y_step) = (step(x_to), step(inside().map(|(_, y)| *y).fold(0.0, f64::max)));
        let x_end = x_to.max(x_step);
        let y_most = inside().map(|(_, y)| *y).fold(0.0, f64::max);
        let y_end = ((y_most / y_step).ceil() * y_step).max(y_step);
        let at = |x: f64, y: f64| {
            let right = LEFT + x / x_end * (WIDTH - LEFT - RIGHT);
            (right, HEIGHT - BOTTOM - y / y_end * (HEIGHT - TOP - BOTTOM))
        };
        let names = self.legend();
        let whole = HEIGHT + names.last().map_or(0.0, |(_, y)| *y) + ROW;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {whole}\" width=\"{WIDTH}\" height=\"{whole}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        text(&mut out, (WIDTH / 2.0, 20.0), "middle", &self.title);
        text(&mut out, ((WIDTH + LEFT - RIGHT) / 2.0, HEIGHT - BOTTOM + 34.0), "middle", &self.x);
        let turned = format!("transform=\"rotate(-90 14 {})\" ", (HEIGHT - BOTTOM + TOP) / 2.0);
        text_with(&mut out, (14.0, (HEIGHT - BOTTOM + TOP) / 2.0), "middle", &self.y, &turned);
        self.grid(&mut out, (x_end, x_step), (y_end, y_step), at);
        for series in &self.series {
            series.draw(&mut out, x_to, at);
        }
        for (series, (x, y)) in self.series.iter().zip(names) {
            let (y, stroke) = (HEIGHT + y, series.stroke());
            let _ = writeln!(out, "<path d=\"M{x:.1} {:.1}h22\" {stroke}/>", y - 4.0);
            text(&mut out, (x + 26.0, y), "start", &series.name);
        }
        out.push_str("</svg>\n");
        out
    }

    fn grid(
        &self,
        out: &mut String,
        (x_end, x_step): (f64, f64),
        (y_end, y_step): (f64, f64),
        at: impl Fn(f64, f64) -> (f64, f64),
    ) {
        let lines = |end: f64, step: f64| {
            (0..=(end / step + 1e-9) as u32).map(move |n| f64::from(n) * step)
        };
        for x in lines(x_end, x_step) {
            let ((left, low), (_, high)) = (at(x, 0.0), at(x, y_end));
            line(out, (left, low), (left, high));
            text(out, (left, low + 16.0), "middle", &figure(x, x_step));
        }
        for y in lines(y_end, y_step) {
            let ((left, low), (right, _)) = (at(0.0, y), at(x_end, y));
            line(out, (left, low), (right, low));
            text(out, (left - 6.0, low + 4.0), "end", &figure(y, y_step));
        }
    }

    /// The places of the names under the chart, as many in a row as there is room for; from its lower left corner.
    fn legend(&self) -> Vec<(f64, f64)> {
        let (mut x, mut y) = (LEFT, ROW / 2.0);
        let mut places = Vec::with_capacity(self.series.len());
        for series in &self.series {
            let width = 42.0 + series.name.chars().count() as f64 * LETTER;
            if x + width > WIDTH - RIGHT && x > LEFT {
                (x, y) = (LEFT, y + ROW);
            }
            places.push((x, y));
            x += width;
        }
        places
    }
}

impl Series {
    fn stroke(&self) -> String {
        let colour = COLOURS[self.colour % COLOURS.len()];
        let dashes = if self.dashed { " stroke-dasharray=\"5 3\"" } else { "" };
        format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"{dashes}")
    }

    fn draw(&self, out: &mut String, x_to: f64, at: impl Fn(f64, f64) -> (f64, f64)) {
        let points = self.points.iter().filter(|(x, _)| *x <= x_to);
        let places: Vec<(f64, f64)> = points.map(|(x, y)| at(*x, *y)).collect();
        let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        if path.is_empty() {
            return;
        }
        let _ = writeln!(out, "<path d=\"M{}\" {}/>", path.join("L"), self.stroke());
        if self.marked {
            let colour = COLOURS[self.colour % COLOURS.len()];
            for (x, y) in places {
                let _ = writeln!(
                    out,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"{colour}\"/>"
                );
            }
        }
    }
}

/// A round number of which some five are in so much.
fn step(all: f64) -> f64 {
    if all <= 0.0 {
        return 1.0;
    }
    let rough = all / 5.0;
    let ten = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * ten)
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(ten)
}

/// With as many digits as a step has.
fn figure(value: f64, step: f64) -> String {
    let digits = (-step.log10().floor()).max(0.0) as usize;
    format!("{value:.digits$}")
}

fn line(out: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let _ = writeln!(out, "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"#ddd\"/>");
}

fn text(out: &mut String, place: (f64, f64), anchor: &str, words: &str) {
    text_with(out, place, anchor, words, "");
}

fn text_with(out: &mut String, (x, y): (f64, f64), anchor: &str, words: &str, more: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" {more}text-anchor=\"{anchor}\">{words}</text>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>) -> String {
        let series =
            Series { name: "a < b & c".into(), colour: 0, dashed: true, marked: true, points };
        Chart {
            title: "t".into(),
            x: "x".into(),
            y: "y".into(),
            x_to: Some(10.0),
            series: vec![series],
        }
        .svg()
    }

    #[test]
    fn a_chart_has_its_line_its_marks_and_safe_words() {
        let svg = chart(vec![(0.0, 0.0), (10.0, 4.0), (20.0, 900.0)]);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("a &lt; b &amp; c") && svg.contains("stroke-dasharray"));
        assert_eq!(svg.matches("<circle").count(), 2, "what is beyond the end is cut off");
        // The first point is in the lower left corner, the last one at the upper right.
        let (low, high) = (HEIGHT - BOTTOM, TOP);
        let corner = format!("M{LEFT:.1} {low:.1}L{:.1} {high:.1}\"", WIDTH - RIGHT);
        assert!(svg.contains(&corner), "{svg}");
    }

    #[test]
    fn names_do_not_run_out_of_the_chart() {
        let series = |number| Series {
            name: format!("a long name of number {number}"),
            colour: number,
            dashed: false,
            marked: false,
            points: Vec::new(),
        };
        let series: Vec<Series> = (0..12).map(series).collect();
        let chart = Chart { title: "t".into(), x: "x".into(), y: "y".into(), x_to: None, series };
        let places = chart.legend();
        assert!(places.iter().all(|(x, _)| *x < WIDTH / 1.3));
        let last = places.last().expect("twelve names").1;
        assert!(last > ROW && chart.svg().contains(&format!("height=\"{}\"", HEIGHT + last + ROW)));
    }

    #[test]
    fn an_empty_chart_is_a_chart() {
        assert!(chart(Vec::new()).contains("</svg>"));
        assert!(!chart(vec![(0.0, 0.0)]).contains("NaN"));
    }

    #[test]
    fn steps_are_round() {
        assert_eq!([1.0, 7.0, 1_000.0, 0.02].map(step), [0.2, 2.0, 200.0, 0.005]);
        assert_eq!(figure(0.4, 0.2), "0.4");
        assert_eq!(figure(400.0, 200.0), "400");
    }
}
